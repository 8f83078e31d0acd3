/** The page's colors in the current theme, in the form that a canvas needs. */

export type Theme = (name: string) => string;

/** Reads the current theme. @param element an element that the page's style applies to */
export function themeOf(element: HTMLElement): Theme {
  const known = new Map<string, string>();
  return (name) => {
    let colour = known.get(name);
    if (colour === undefined) {
      element.style.color = `var(${name})`;
      colour = getComputedStyle(element).color;
      element.style.color = "";
      known.set(name, colour);
    }
    return colour;
  };
}

/** Calls `changed` whenever the theme changes. Returns a function that stops this. */
export function onTheme(changed: () => void): () => void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  dark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", changed);
  };
}
