// What moves the timeline: dragging, the wheel, two fingers.
import { useEffect, useRef } from "preact/hooks";
import { moved, zoomed, type Span } from "../../shared/run/viewport";

const WHEEL_ZOOM = 0.0022; // per px of wheel

/** Handlers for the canvas; `move` says whether a pointer's move was a drag, `dragged` whether the last press became one. */
export function useGestures(
  canvas: { readonly current: HTMLCanvasElement | null },
  span: Span,
  setSpan: (span: Span) => void,
  whole: Span,
  width: number,
) {
  const now = useRef({ span, whole, width });
  now.current = { span, whole, width };
  const fingers = useRef(new Map<number, { x: number; from: number }>());
  const drag = useRef({ far: 0 });
  useEffect(() => {
    const element = canvas.current;
    const onWheel = (event: WheelEvent) => {
      const { span: seen, whole: all, width: wide } = now.current;
      if (event.ctrlKey || event.metaKey) {
        setSpan(zoomed(seen, Math.exp(event.deltaY * WHEEL_ZOOM * (event.deltaMode === 0 ? 1 : 30)), event.offsetX / wide, all));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        setSpan(moved(seen, (event.deltaX || event.deltaY) / wide, all));
      } else {
        return; // the page scrolls
      }
      event.preventDefault();
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);

  const move = (event: PointerEvent): boolean => {
    const finger = fingers.current.get(event.pointerId);
    if (!finger) return false;
    const before = [...fingers.current.values()].map(({ x }) => x);
    const by = event.offsetX - finger.x;
    finger.x = event.offsetX;
    drag.current.far = Math.max(drag.current.far, Math.abs(event.offsetX - finger.from));
    const { span: seen, whole: all, width: wide } = now.current;
    const after = [...fingers.current.values()].map(({ x }) => x);
    if (after.length === 2) {
      const [was, is] = [Math.abs(before[0]! - before[1]!), Math.abs(after[0]! - after[1]!)];
      setSpan(zoomed(seen, Math.max(was, 10) / Math.max(is, 10), (after[0]! + after[1]!) / 2 / wide, all));
    } else {
      setSpan(moved(seen, -by / wide, all));
    }
    return true;
  };
  const lift = (event: PointerEvent) => fingers.current.delete(event.pointerId);
  return {
    move,
    dragged: (slop: number) => drag.current.far > slop,
    handlers: {
      onPointerDown: (event: PointerEvent) => {
        if (event.button !== 0) return;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        if (fingers.current.size === 0) drag.current.far = 0;
        fingers.current.set(event.pointerId, { x: event.offsetX, from: event.offsetX });
      },
      onPointerUp: lift,
      onPointerCancel: lift,
    },
  };
}
