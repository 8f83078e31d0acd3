import { expect, test } from "vitest";
import { event } from "./fixtures.ts";
import { hasSentence, phraseOf, topicOfEvent } from "./phrase-book.ts";

test("describes a deposed leader as stepping down", () => {
  expect(phraseOf(event(3, 4, "election", { type: "deposed", epoch: 6 }))).toEqual({
    topic: "leadership",
    one: "steps down (epoch 6)",
    many: "step down (epoch 6)",
  });
});

test.each(["constructor", "toString", "__proto__"])("describes an event called %s like any other", (type) => {
  const entry = event(3, 0, "election", { type, value: 7 });
  expect(phraseOf(entry)).toEqual({ topic: "protocol", one: `emits ${type} 7`, many: `emit ${type} 7` });
  expect([hasSentence({ type }), topicOfEvent({ type })]).toEqual([false, "protocol"]);
});
