// A view in a file of its own, which is fetched from our server when it is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

export function lazyView<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [state, setState] = useState<"loading" | "loaded" | "failed">(loaded ? "loaded" : "loading");
    useEffect(() => {
      if (loaded) return;
      load().then(
        (view) => {
          loaded = view;
          setState("loaded");
        },
        () => setState("failed"),
      );
    }, []);
    if (loaded && state === "loaded") {
      const View = loaded;
      return <View {...props} />;
    }
    if (state === "loading") return <p class="muted request delayed">Loading…</p>;
    return (
      <p class="request" role="status">
        This part of the tab could not be loaded. TensorBoard may have been stopped, or tb_bottleneck was updated since this
        page was opened: reload the page.
      </p>
    );
  };
}
