/** Reads the contents of a page's canvas. The element carries the painted geometry. */
import type { Page } from "playwright-core";

export interface Drawn {
  /** The drawn messages: type, start and end. */
  readonly messages: readonly {
    readonly type: string;
    readonly from: number;
    readonly to: number;
    readonly lost: boolean;
  }[];
  readonly marks: readonly { readonly shape: string; readonly node: number; readonly label: string }[];
  /** Held-back messages, as text. */
  readonly held: readonly string[];
  /** Network faults, as text. */
  readonly network: readonly string[];
  /** States of nodes, for example in the critical section or leading. */
  readonly states: readonly { readonly kind: string; readonly words: string }[];
  /** The texts. */
  readonly words: readonly string[];
  /** The number of drawn messages in the window, and of messages below it. */
  readonly count: number;
}

const READING = `(() => {
  const { picture } = document.querySelector("canvas") ?? {};
  if (picture === undefined) return null;
  return {
    messages: picture.arrows.map(({ message, fate }) => ({ type: message.name.short, from: message.from, to: message.to, lost: fate === "lost" })),
    marks: picture.marks.map(({ shape, node, label }) => ({ shape, node, label })),
    held: picture.tracks.map(({ title }) => title),
    network: picture.spans.map(({ title }) => title),
    states: picture.states.map(({ kind, words }) => ({ kind, words })),
    words: picture.letters.map(({ text }) => text),
    count: picture.crowd?.count ?? picture.arrows.length,
  };
})()`;

/** Returns null if nothing has been drawn yet. */
export const drawn = (page: Page): Promise<Drawn | null> => page.evaluate<Drawn | null>(READING);
