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
  return preferred.map(languageNamed).find((language) => language !== null) ?? "en";
}

function languageNamed(tag: string | undefined): Language | null {
  const [name = ""] = (tag ?? "").toLowerCase().split("-");
  return Object.hasOwn(languages, name) ? (name as Language) : null;
}

/** Why a link does not lead to a step of a tour in its language, as sentences. @param tour null if the link names none */
export function linkProblems(
  texts: Texts,
  words: Readonly<Record<string, string>>,
  tour: { readonly steps: readonly unknown[] } | null,
): string[] {
  const { lang, step, tour: name } = words;
  const count = tour?.steps.length ?? 0;
  return [
    ...(lang !== undefined && languageNamed(lang) === null
      ? [filled(texts["ui.no-language"] ?? "", { name: lang })]
      : []),
    ...(name !== undefined && tour === null ? [filled(texts["ui.unknown"] ?? "", { name })] : []),
    ...(step !== undefined && tour !== null && !isStep(step, count)
      ? [filled(texts["ui.no-step"] ?? "", { step, of: count })]
      : []),
  ];
}

/** @param step as a link has it, from 1 */
const isStep = (step: string, count: number): boolean =>
  /^\d{1,9}$/.test(step) && Number(step) >= 1 && Number(step) <= count;

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
