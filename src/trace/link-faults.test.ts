/** What is written of links is read again. */
import { expect, test } from "vitest";
import {
  ALL_MENDED,
  type LinkFault,
  linkChanged,
  linkCut,
  linkFaultIn,
  linkMended,
  reaches,
  sendingChanged,
} from "./link-faults.ts";

const written: readonly (readonly [string, LinkFault])[] = [
  [linkCut(12), { kind: "cut", to: 12 }],
  [linkMended(3), { kind: "mended", to: 3 }],
  [ALL_MENDED, { kind: "all mended" }],
  [reaches([]), { kind: "partition", reached: [] }],
  [reaches([0, 11]), { kind: "partition", reached: [0, 11] }],
  [linkChanged(2, { delay: [10, 50] }), { kind: "changed", to: 2, model: { delay: [10, 50] } }],
  [
    sendingChanged({ dropRate: 0.075, delayMs: { min: 0, max: 12.5 } }),
    { kind: "sending", dropRate: 0.075, delayMs: { min: 0, max: 12.5 } },
  ],
];

test.each(written)("%s", (words, fault) => {
  expect(linkFaultIn(words)).toEqual(fault);
});

test.each([
  "journal damaged at record 2 of 3",
  "clock at 2 times the speed",
  "link to 2 changed: {",
  "link to x cut",
  "",
])("%j is no fault of links", (words) => {
  expect(linkFaultIn(words)).toBeNull();
});
