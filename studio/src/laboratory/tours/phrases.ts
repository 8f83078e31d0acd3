/**
 * What the laboratory says beside a tour, in the tour's language: headlines, properties and what they claim, and the words
 * of its controls. All of it is written in English where it is made; here are its sentences as patterns, each with a key.
 */
import type { Language, Texts } from "./texts.ts";

const files: Readonly<Record<Language, () => Promise<{ default: Texts }>>> = {
  en: () => import("./phrases/en.json"),
  es: () => import("./phrases/es.json"),
  pt: () => import("./phrases/pt.json"),
  ru: () => import("./phrases/ru.json"),
};

export async function phrasesIn(language: Language): Promise<Phrases> {
  const [english, own] = await Promise.all([files.en(), files[language]()]);
  return new Phrases(english.default, own.default);
}

interface Pattern {
  readonly key: string;
  /** With a group for each placeholder, by its name. */
  readonly expression: RegExp;
}

/** `3`, `1.5`, `1,200`, `0, 1 and 2`. */
const NUMBERS = String.raw`\d+(?:[.,]\d+)?(?:, \d+)*(?: and \d+)?`;
/** What stands in quotation marks is anything. */
const VALUE = "[^“”]*";

export class Phrases {
  readonly #english: Texts;
  readonly #own: Texts;
  readonly #keys: ReadonlyMap<string, string>;
  readonly #patterns: readonly Pattern[];

  constructor(english: Texts, own: Texts) {
    this.#english = english;
    this.#own = own;
    const all = Object.entries(english);
    this.#keys = new Map(all.map(([key, text]) => [text, key]));
    this.#patterns = all
      .filter(([, text]) => text.includes("{"))
      .map(([key, text]) => ({ key, expression: expressionOf(text) }));
  }

  /** Null where there is none. What a part of a protocol claims, such as `election: E2 liveness`, has the part before it. */
  of(text: string): string | null {
    const whole = this.#clause(text);
    if (whole !== null) return whole;
    const [, part = "", claimed = ""] = /^([a-z]+: )(.*)$/s.exec(text) ?? [];
    const own = part === "" ? null : this.#clause(claimed);
    return own === null ? this.#sentence(text) : part + own;
  }

  /** `Node 0 leads; 1 is down.`: clauses, of which the first begins with a capital. */
  #sentence(text: string): string | null {
    if (!text.endsWith(".")) return null;
    const clauses = (text.charAt(0).toLowerCase() + text.slice(1, -1)).split("; ").map((each) => this.#joined(each));
    if (clauses.includes(null)) return null;
    const all = clauses.join("; ");
    return `${all.charAt(0).toUpperCase()}${all.slice(1)}.`;
  }

  /** Clauses with a word between them that sets them against each other. */
  #joined(text: string): string | null {
    const whole = this.#clause(text);
    if (whole !== null) return whole;
    const parts = text.split(this.#english["list.but"] ?? "").map((each) => this.#clause(each));
    return parts.includes(null) ? null : parts.join(this.#own["list.but"]);
  }

  #clause(text: string): string | null {
    const exact = this.#keys.get(text);
    if (exact !== undefined) return this.#own[exact] ?? null;
    for (const { key, expression } of this.#patterns) {
      const found = expression.exec(text)?.groups;
      if (found !== undefined) return this.#filled(this.#own[key] ?? "", found);
    }
    return null;
  }

  #filled(text: string, values: Readonly<Record<string, string>>): string {
    const between = this.#own["list.and"] ?? " ";
    return text.replaceAll(/\{([a-z]+)\}/g, (whole, name: string) => {
      const value = values[name] ?? whole;
      if (name === "value") return value;
      // In English a comma sets thousands apart, and a point begins the decimals.
      const grouped =
        this.#own === this.#english
          ? value
          : value.replaceAll(/(?<=\d),(?=\d{3})/g, "\u202f").replaceAll(/(?<=\d)\.(?=\d)/g, ",");
      return grouped.replace(" and ", between);
    });
  }
}

function expressionOf(text: string): RegExp {
  const parts = text.split(/\{([a-z]+)\}/);
  const source = parts.map((part, place) => {
    if (place % 2 === 0) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    return `(?<${part}>${part === "value" ? VALUE : NUMBERS})`;
  });
  return new RegExp(`^${source.join("")}$`);
}
