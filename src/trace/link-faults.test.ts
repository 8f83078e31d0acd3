/** Checks that texts of link faults can be parsed again. */
import { expect, test } from "vitest";
import {
  ALL_MENDED,
  faultText,
  type LinkFault,
  linkChanged,
  linkCut,
  linkFaultIn,
  linkMended,
  reaches,
  sendingChanged,
} from "./link-model.ts";

const written: readonly (readonly [string, LinkFault])[] = [
  [linkCut(12), { kind: "cut", to: 12 }],
  [linkMended(3), { kind: "mended", to: 3 }],
  [ALL_MENDED, { kind: "all mended" }],
  [reaches([]), { kind: "partition", reached: [] }],
  [reaches([0, 11]), { kind: "partition", reached: [0, 11] }],
  [linkChanged(2, { delay: [10, 50] }), { kind: "changed", to: 2, model: { delay: [10, 50] } }],
  [
    linkChanged(2, { delay: { logNormal: { medianMs: 5, sigma: 0.5 } }, lossRate: 0.1, order: "none" }),
    {
      kind: "changed",
      to: 2,
      model: { delay: { logNormal: { medianMs: 5, sigma: 0.5 } }, lossRate: 0.1, order: "none" },
    },
  ],
  [
    linkChanged(2, { bytesPerMs: Number.POSITIVE_INFINITY }),
    { kind: "changed", to: 2, model: { bytesPerMs: Number.POSITIVE_INFINITY } },
  ],
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
  'link to 2 changed: {"delay":null}',
  'link to 2 changed: {"delay":[20,10]}',
  'link to 2 changed: {"lossRate":null}',
  'link to 2 changed: {"order":"lifo"}',
  'link to 2 changed: {"speed":1}',
  'link to 2 changed: {"__proto__":{"delay":1}}',
  "link to x cut",
  "",
])("%j is not a link fault", (words) => {
  expect(linkFaultIn(words)).toBeNull();
});

test.each([
  [linkChanged(1, { delay: 100 }), "link to 1: 100 ms of delay"],
  [linkChanged(1, { delay: [1, 9], lossRate: 0.1 }), "link to 1: 10 % of the messages dropped, 1 to 9 ms of delay"],
  [
    linkChanged(2, { delay: { normal: { meanMs: 40, deviationMs: 2 } }, order: "none" }),
    "link to 2: about 40 ms of delay, messages overtake each other",
  ],
  [linkChanged(2, { duplicateRate: 0.5, bytesPerMs: 20 }), "link to 2: 50 % of the messages twice, 20 bytes per ms"],
  [linkChanged(0, { lossRate: 0, bytesPerMs: Number.POSITIVE_INFINITY }), "link to 0: no faults"],
  [linkCut(1), linkCut(1)],
  ["journal lost", "journal lost"],
])("%s is shown as text", (what, text) => {
  expect(faultText(what)).toBe(text);
});
