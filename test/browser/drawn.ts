/** What the canvas of a page shows: the geometry that it was painted from, which its element carries. */
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
  /** What is held back, in words. */
  readonly held: readonly string[];
  /** What was wrong with the network, in words. */
  readonly network: readonly string[];
  /** What nodes were in: the critical section, a term of leadership. */
  readonly states: readonly { readonly kind: string; readonly words: string }[];
  /** What is written. */
  readonly words: readonly string[];
  /** Of all messages in the window, those that are drawn and those that lie below them. */
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
