import { expect, test } from "vitest";
import type { TraceEntry } from "../entry.ts";
import { linkChanged } from "../link-model.ts";
import { inscriptionOf } from "./marks.ts";

const nested = { type: "done", plan: { delay: 1, links: [{ to: 2 }] }, none: null };

/** Keyed by kind, so that the compiler reports a missing kind. */
const entries: { readonly [K in TraceEntry["kind"]]: TraceEntry & { readonly kind: K } } = {
  start: { at: 1, node: 0, kind: "start", journal: [nested] },
  crash: { at: 1, node: 0, kind: "crash", journal: [nested] },
  send: { at: 1, node: 0, kind: "send", id: "0-1", to: 1, message: nested },
  receive: { at: 1, node: 0, kind: "receive", id: "1-1", from: 1, message: nested },
  lost: { at: 1, node: 0, kind: "lost", id: "0-1", to: 1, why: "cut" },
  timeout: { at: 1, node: 0, kind: "timeout", timer: "part.answer" },
  command: { at: 1, node: 0, kind: "command", command: nested },
  event: { at: 1, node: 0, kind: "event", event: nested },
  choice: { at: 1, node: 0, kind: "choice", label: "where", option: nested },
  pause: { at: 1, node: 0, kind: "pause" },
  resume: { at: 1, node: 0, kind: "resume" },
  fault: { at: 1, node: 0, kind: "fault", what: linkChanged(1, { delay: 1, lossRate: 0.5 }) },
  gap: { at: 1, node: 0, kind: "gap", dropped: 3 },
  view: { at: 1, node: 0, kind: "view", view: { role: "idle" }, state: nested },
};

test.each(Object.entries(entries))("describes a %s next to its mark in words, not as JSON", (_kind, entry) => {
  const { words, delivered, role } = inscriptionOf([entry], null);
  expect(`${words} ${delivered} ${role}`).not.toMatch(/[{}"]/);
});
