import { describe, expect, it, test } from "vitest";
import { filled, type Language, languageOf, languages, linkProblems, textsIn, verdictText } from "./texts.ts";
import { keysOf, tours } from "./tours.ts";

const placeholders = (text: string): string[] => (text.match(/\{[a-z]+\}/g) ?? []).toSorted();
const others = (Object.keys(languages) as Language[]).filter((name) => name !== "en");

describe("texts", () => {
  it("are there for each tour, and nothing else is", async () => {
    const texts = await textsIn("en");
    const own = Object.keys(texts).filter((key) => !key.startsWith("ui."));
    expect(own.toSorted()).toEqual(tours.flatMap(keysOf).toSorted());
  });

  it.each(others)(
    "are complete in %s: the same keys, the same placeholders, none empty, none left in English",
    async (language) => {
      const [english, texts] = [await textsIn("en"), await textsIn(language)];
      expect(Object.keys(texts)).toEqual(Object.keys(english));
      for (const [key, text] of Object.entries(texts)) {
        expect(text.trim(), key).not.toBe("");
        expect(placeholders(text), key).toEqual(placeholders(english[key] ?? ""));
        if (/[a-z]{3}/i.test(english[key] ?? "") && !key.endsWith("choice.a")) expect(text, key).not.toBe(english[key]);
      }
    },
  );

  it("tell choices apart", async () => {
    for (const language of Object.keys(languages) as Language[]) {
      const texts = await textsIn(language);
      for (const { name, steps } of tours) {
        const choices = steps.flatMap(({ ask = [] }) => ask.map(({ key }) => texts[`${name}.choice.${key}`]));
        expect(new Set(choices).size).toBe(choices.length);
      }
    }
  });
});

test("a verdict consists of whole sentences, whatever was predicted, in each language", async () => {
  for (const language of Object.keys(languages) as Language[]) {
    const texts = await textsIn(language);
    for (const { name, steps } of tours)
      for (const said of steps.flatMap(({ ask = [] }) => ask))
        for (const right of steps.flatMap(({ ask = [] }) => ask)) {
          const verdict = verdictText(texts, name, said.key, right.key);
          expect(verdict).toMatch(said === right ? /^[^:]+: .*[.!?]$/ : /^[^:]+: .*[.!?] \p{Lu}[^:]+: .*[.!?]$/u);
          expect(verdict).not.toMatch(/[.!?]{2}/);
        }
  }
  const texts = await textsIn("en");
  expect(verdictText(texts, "nobody-alone", "a", "b")).toBe("You said: 0.1. The run shows: 2.1.");
});

test("the first language that there are texts in is taken", () => {
  expect(languageOf([undefined, "fi", "pt-BR", "en"])).toBe("pt");
  expect(languageOf(["xx", "constructor"])).toBe("en");
  expect(filled("{sent} of {n}", { sent: 3 })).toBe("3 of {n}");
});

test("a link to a step, a language or a tour that does not exist is reported in the language of the page", async () => {
  const [en, ru] = [await textsIn("en"), await textsIn("ru")];
  const tour = { steps: [1, 2, 3] };
  for (const step of ["0", "4", "-1", "two", "1e1", ""])
    expect(linkProblems(en, { tour: "x", step }, tour)).toEqual([
      `Step “${step}” does not exist: this tour has steps 1 to 3.`,
    ]);
  expect(linkProblems(ru, { tour: "x", step: "4", lang: "xx" }, tour)).toEqual([
    "Экскурсий на языке «xx» нет. Выберите язык из списка.",
    "Шага «4» нет: в этой экскурсии шаги с 1 по 3.",
  ]);
  for (const step of ["1", "3"]) expect(linkProblems(en, { tour: "x", step, lang: "pt-BR" }, tour)).toEqual([]);
  expect(linkProblems(en, { tour: "none", step: "9" }, null)).toHaveLength(1);
  expect(linkProblems(en, {}, null)).toEqual([]);
});
