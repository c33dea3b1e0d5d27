// Moves and zooms the timeline by dragging, the wheel and two fingers.
import { useEffect, useRef } from "preact/hooks";
import { moved, zoomed, type Span } from "../../shared/run/viewport";

const WHEEL_ZOOM = 0.0022; // per px of wheel

/** Event handlers for the canvas. `move` returns true if a pointer move was a drag; `dragged` if the last press became one. */
export function useGestures(
  canvas: { readonly current: HTMLCanvasElement | null },
  span: Span,
  setSpan: (span: Span) => void,
  whole: Span,
  width: number,
) {
  const latest = useRef({ span, whole, width });
  latest.current = { span, whole, width };
  const pointers = useRef(new Map<number, { x: number; from: number }>());
  const drag = useRef({ distance: 0 });
  useEffect(() => {
    const element = canvas.current;
    const onWheel = (event: WheelEvent) => {
      const { span: visible, whole: full, width: pixels } = latest.current;
      if (event.ctrlKey || event.metaKey) {
        setSpan(zoomed(visible, Math.exp(event.deltaY * WHEEL_ZOOM * (event.deltaMode === 0 ? 1 : 30)), event.offsetX / pixels, full));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        setSpan(moved(visible, (event.deltaX || event.deltaY) / pixels, full));
      } else {
        return; // let the page scroll
      }
      event.preventDefault();
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);

  const move = (event: PointerEvent): boolean => {
    const pointer = pointers.current.get(event.pointerId);
    if (!pointer) return false;
    const before = [...pointers.current.values()].map(({ x }) => x);
    const delta = event.offsetX - pointer.x;
    pointer.x = event.offsetX;
    drag.current.distance = Math.max(drag.current.distance, Math.abs(event.offsetX - pointer.from));
    const { span: visible, whole: full, width: pixels } = latest.current;
    const after = [...pointers.current.values()].map(({ x }) => x);
    if (after.length === 2) {
      const [oldGap, newGap] = [Math.abs(before[0]! - before[1]!), Math.abs(after[0]! - after[1]!)];
      setSpan(zoomed(visible, Math.max(oldGap, 10) / Math.max(newGap, 10), (after[0]! + after[1]!) / 2 / pixels, full));
    } else {
      setSpan(moved(visible, -delta / pixels, full));
    }
    return true;
  };
  const release = (event: PointerEvent) => pointers.current.delete(event.pointerId);
  return {
    move,
    dragged: (slop: number) => drag.current.distance > slop,
    handlers: {
      onPointerDown: (event: PointerEvent) => {
        if (event.button !== 0) return;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        if (pointers.current.size === 0) drag.current.distance = 0;
        pointers.current.set(event.pointerId, { x: event.offsetX, from: event.offsetX });
      },
      onPointerUp: release,
      onPointerCancel: release,
    },
  };
}
