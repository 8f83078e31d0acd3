/** The language that components of the laboratory speak: English, unless what they are in says otherwise. */
import { getContext, setContext } from "svelte";
import type { Phrases } from "./phrases.ts";

export type Say = (english: string) => string;

const KEY = Symbol("say");

/** All that is within the component speaks by these phrases; what they do not have stays English. */
export function speaks(phrases: () => Phrases): Say {
  const say: Say = (english) => phrases().of(english) ?? english;
  setContext(KEY, say);
  return say;
}

export const inEnglish: Say = (english) => english;

export const saying = (): Say => getContext<Say | undefined>(KEY) ?? inEnglish;
