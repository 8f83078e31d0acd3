/** The user's choice of a light or dark theme, which is saved for the next visit. */

export type Theme = "auto" | "light" | "dark";

export const themes: readonly Theme[] = ["auto", "light", "dark"];

const KEY = "coterie.theme";

class ThemeChoice {
  theme = $state<Theme>("auto");

  constructor() {
    const kept = stored();
    if (kept !== null) this.choose(kept);
  }

  choose(theme: Theme): void {
    this.theme = theme;
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage is not available, so the choice lasts only as long as the page.
    }
  }
}

function stored(): Theme | null {
  try {
    return themes.find((theme) => theme === localStorage.getItem(KEY)) ?? null;
  } catch {
    return null;
  }
}

export const themeChoice = new ThemeChoice();
