// A view that is a file of its own, fetched from our server when it is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let found: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [state, setState] = useState<"loading" | "there" | "failed">(found ? "there" : "loading");
    useEffect(() => {
      if (found) return;
      load().then(
        (view) => {
          found = view;
          setState("there");
        },
        () => setState("failed"),
      );
    }, []);
    if (found && state === "there") {
      const View = found;
      return <View {...props} />;
    }
    if (state === "loading") return <p class="muted awaited late">Opening…</p>;
    return (
      <p class="awaited" role="status">
        This part of the tab could not be fetched. TensorBoard may have been stopped, or tb_bottleneck was updated since this
        page was opened: reload the page.
      </p>
    );
  };
}
