// The colours and fonts of the page, for drawings on a canvas.
import { useEffect, useState } from "preact/hooks";
import { isDark, onThemeChange } from "./host";

export interface PageTheme {
  readonly page: string;
  readonly raised: string;
  readonly sunken: string;
  readonly line: string;
  readonly text: string;
  readonly muted: string;
  readonly focus: string;
  readonly font: string;
  readonly mono: string;
  readonly dark: boolean;
}

/** The theme at an element; undefined until it is known. */
export function useTheme(holder: { readonly current: HTMLElement | null }): PageTheme | undefined {
  const [theme, setTheme] = useState<PageTheme>();
  useEffect(() => {
    const read = () => {
      if (!holder.current) return;
      const style = getComputedStyle(holder.current);
      const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
      setTheme({
        page: colour("page"),
        raised: colour("raised"),
        sunken: colour("sunken"),
        line: colour("line"),
        text: colour("text"),
        muted: colour("muted"),
        focus: colour("focus"),
        font: style.fontFamily,
        mono: colour("mono"),
        dark: isDark(),
      });
    };
    read();
    return onThemeChange(read);
  }, []);
  return theme;
}
