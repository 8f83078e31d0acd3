/** What tours say, in the language that is chosen; each language is loaded when somebody chooses it. */

export const languages = { en: "English", es: "Español", pt: "Português", ru: "Русский" } as const;
export type Language = keyof typeof languages;
export type Texts = Readonly<Record<string, string>>;

const files: Readonly<Record<Language, () => Promise<{ default: Texts }>>> = {
  en: () => import("./texts/en.json"),
  es: () => import("./texts/es.json"),
  pt: () => import("./texts/pt.json"),
  ru: () => import("./texts/ru.json"),
};

export async function textsIn(language: Language): Promise<Texts> {
  return (await files[language]()).default;
}

/** The first of these that there are texts in, such as `pt-BR`; otherwise English. */
export function languageOf(preferred: readonly (string | undefined)[]): Language {
  for (const tag of preferred) {
    const [name = ""] = (tag ?? "").toLowerCase().split("-");
    if (Object.hasOwn(languages, name)) return name as Language;
  }
  return "en";
}

/** What a tour answers to a prediction. @param said @param right keys of its choices */
export function verdictText(texts: Texts, tour: string, said: string, right: string): string {
  const choice = (key: string): string => withFullStop(texts[`${tour}.choice.${key}`] ?? "");
  return said === right
    ? filled(texts["ui.right"] ?? "", { answer: choice(right) })
    : filled(texts["ui.wrong"] ?? "", { said: choice(said), answer: choice(right) });
}

const withFullStop = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Puts values in the place of `{names}`. */
export function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
