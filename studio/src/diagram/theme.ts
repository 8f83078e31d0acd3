/** The colours of the page in the theme of the moment, as a canvas needs them. */

export type Theme = (name: string) => string;

/** @param element where the page's style holds */
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

/** Calls back when the theme changes; returns what ends that. */
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
