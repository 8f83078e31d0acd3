/** The reader's choice between light and dark. The laboratory keeps it under the same key, and frames of it follow at once. */

const KEY = "coterie.theme";

export function enableThemes(): void {
  const label = document.querySelector<HTMLElement>(".theme");
  const choice = label?.querySelector("select");
  if (!label || !choice) return;
  choice.value = kept() ?? "auto";
  label.hidden = false;
  choice.addEventListener("change", () => {
    keep(choice.value);
    for (const page of [document, ...laboratories()]) show(page, choice.value);
  });
}

function show(page: Document, theme: string): void {
  if (theme === "auto") delete page.documentElement.dataset.theme;
  else page.documentElement.dataset.theme = theme;
}

const laboratories = (): Document[] =>
  [...document.querySelectorAll("iframe")].flatMap(({ contentDocument }) => contentDocument ?? []);

function kept(): string | null {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null; // Storage is forbidden here.
  }
}

function keep(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts as long as the page.
  }
}
