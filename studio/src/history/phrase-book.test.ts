import { expect, test } from "vitest";
import { event } from "./fixtures.ts";
import { hasSentence, phraseOf, topicOfEvent } from "./phrase-book.ts";

test.each(["constructor", "toString", "__proto__"])("an event that is called %s is told like any other", (type) => {
  const entry = event(3, 0, "election", { type, value: 7 });
  expect(phraseOf(entry)).toEqual({ topic: "protocol", one: `emits ${type} 7`, many: `emit ${type} 7` });
  expect([hasSentence({ type }), topicOfEvent({ type })]).toEqual([false, "protocol"]);
});
