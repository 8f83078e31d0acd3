/** The contents of a page's canvas: the geometry that was painted, which the element carries. */
import type { Page } from "playwright-core";

export interface Drawn {
  /** By type, from where to where. */
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
  /** States of nodes: the critical section, a term of leadership. */
  readonly states: readonly { readonly kind: string; readonly words: string }[];
  /** The texts. */
  readonly words: readonly string[];
  /** The messages in the window that are drawn, and those below it. */
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

/** Null before anything is drawn. */
export const drawn = (page: Page): Promise<Drawn | null> => page.evaluate<Drawn | null>(READING);
