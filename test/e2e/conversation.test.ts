/** Tests the checker of conversations on a channel. It must detect every violation. */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { Conversation } from "./conversation.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-conversation-"));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));

/** Returns the report of a message with that log index, in the group since 1, with a state founded by 1.1. */
const heard = (revision: number, text: string, change: object = {}) => ({
  ...{ heard: `1.${text[0]}.${revision}.0`, view: 1, text, state: { first: "1.1", count: revision } },
  ...change,
});
const sent = (revision: number, text: string) => ({ sent: `1.${text[0]}.${revision}.0`, text });
const given = (count: number) => ({ given: { first: "1.1", count } });

/** Checks a conversation with these lines of each process. @throws Error for violations */
function account(lines: Readonly<Record<string, readonly object[]>>): string {
  const conversation = new Conversation(mkdtempSync(join(folder, "run-")));
  for (const [id, written] of Object.entries(lines)) {
    const { file } = conversation.enter(Number(id));
    for (const line of written) appendFileSync(file, `${JSON.stringify(line)}\n`);
  }
  conversation.end();
  return conversation.account;
}

const a = heard(1, "1.1 1");
const b = heard(2, "2.2 1");
const c = heard(3, "1.1 2");

test("the same messages in the same order after each state are correct, and a process that ended may lack the last ones", () => {
  expect(account({ 1: [a, sent(1, "1.1 1"), b, c], 2: [given(1), b, sent(2, "2.2 1")] })).toBe(
    "3 messages on a channel of the log, 2 acknowledged, 0 uncertain, of 2 processes, which were given the state 1 times, and founded one 1 times",
  );
  expect(() => account({ 1: [a, given(2), c], 2: [given(0), a, b, c] })).not.toThrow();
});

test("a state that was founded again differs from the first, until all have it again", async () => {
  const conversation = new Conversation(mkdtempSync(join(folder, "run-")));
  const [one, two] = [conversation.enter(1), conversation.enter(2)];
  const write = (file: string, ...lines: readonly object[]): void =>
    appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const anew = (count: number) => ({ state: { first: "2.2", count } });
  write(one.file, a, b, c);
  write(two.file, heard(2, "2.2 1", anew(1)), heard(3, "1.1 2", anew(2)));
  const haveOne = conversation.progress([one.name, two.name]);
  write(one.file, heard(4, "1.1 3"), heard(5, "2.2 2"));
  write(two.file, heard(4, "1.1 3", anew(3)), heard(5, "2.2 2", anew(4)));
  expect(await Promise.race([haveOne.then(() => "one"), setTimeout(100, "not yet")])).toBe("not yet");
  write(one.file, { given: { first: "2.2", count: 4 } });
  await haveOne;
});

test("acknowledged messages that the received state contains are not delivered again", () => {
  expect(() => account({ 1: [a, b, c], 2: [sent(2, "2.2 1"), given(2), c] })).not.toThrow();
});

test.each([
  ["another order", { 1: [a, b, c], 2: [given(0), b, a] }, "2.2 was delivered 1.1.1.0 behind 1.2.2.0"],
  [
    "one left out",
    { 1: [a, b, c], 2: [given(0), a, c] },
    "behind 1.1.1.0 2.2 was delivered 1.1.3.0, and another 1.2.2.0",
  ],
  ["one twice", { 1: [a, a], 2: [given(0)] }, "1.1 was delivered 1.1.1.0 twice"],
  ["said once, and twice there", { 1: [a, heard(2, "1.1 1")], 2: [given(0)] }, "1.1 1 is both 1.1.2.0 and 1.1.1.0"],
  [
    "another text",
    { 1: [a], 2: [given(0), heard(1, "1.1 9")] },
    "2.2 was delivered 1.1.1.0 as 1.1 9 in view 1, another 1.1 1 in 1",
  ],
  [
    "another view",
    { 1: [a], 2: [given(0), heard(1, "1.1 1", { view: 2 })] },
    "2.2 was delivered 1.1.1.0 as 1.1 1 in view 2, another 1.1 1 in 1",
  ],
  [
    "another state",
    { 1: [a], 2: [given(0), heard(1, "1.1 1", { state: { first: "1.1", count: 7 } })] },
    "2.2 has the state 7 of 1.1 after 1.1.1.0, another has 1",
  ],
  [
    "never sent, and there",
    { 1: [a], 2: [given(0), a, { failed: "never-sent", text: "1.1 1" }] },
    "1.1 1 was reported as never sent, but was delivered",
  ],
  [
    "never sent, and there later",
    { 1: [{ failed: "never-sent", text: "1.1 1" }], 2: [given(0), a] },
    "2.2 was delivered 1.1 1, although its send was reported as failed",
  ],
  [
    "acknowledged, and not there",
    { 1: [a, sent(2, "1.1 2"), c], 2: [given(0)] },
    "1.1 2 was acknowledged as 1.1.2.0, and its sender was not delivered it",
  ],
  [
    "acknowledged before the state came, but missing from it",
    { 1: [a, c], 2: [sent(2, "2.2 1"), given(1), c] },
    "2.2 1 was acknowledged as 1.2.2.0, but no process delivered it",
  ],
  [
    "acknowledged as another",
    { 1: [a, sent(1, "1.1 4")], 2: [given(0)] },
    "1.1 4 was acknowledged as 1.1.1.0, which is 1.1 1",
  ],
  ["no state handed on", { 1: [a], 2: [a] }, "no process received the state of the channel"],
])("detects %s", (_what, lines, said) => {
  expect(() => account(lines)).toThrow(said);
});
