import { describe, expect, test } from "vitest";
import { Inkwell } from "../trace/diagram/ink.ts";
import { protocolNames } from "./index.ts";
import { formsOf, messageInksOf, messageTypesOf } from "./message-inks.ts";

test("what a protocol sends, in the order of the declaration, parts included", () => {
  const typesOf = (name: string) => messageTypesOf(formsOf(name).at(-1) as Parameters<typeof messageTypesOf>[0]);
  expect(typesOf("paxos")).toEqual(["prepare", "promise", "accept", "accepted", "nack", "decided", "learnt"]);
  expect(typesOf("chang-roberts")).toEqual([
    "detector.alive",
    "detector.farewell",
    "election.election",
    "election.elected",
  ]);
  expect(typesOf("causal-total")).toContain("lower.multicast");
});

test("the textbook's messages have the first inks, in the order of the book", () => {
  expect(messageInksOf("bully")).toMatchObject({ election: 0, answer: 1, coordinator: 2 });
  expect(messageInksOf("ricart-agrawala")).toMatchObject({ "mutex.request": 0, "mutex.reply": 1 });
  expect(messageInksOf("an algorithm of one's own")).toEqual({});
});

describe.each(protocolNames)("%s", (name) => {
  const places = messageInksOf(name);
  const inkwell = new Inkwell(places);

  test("a message has one ink in the textbook's form and in every other", () => {
    const textbook = messageTypesOf(formsOf(name)[0] as Parameters<typeof messageTypesOf>[0]);
    const others = formsOf(name).slice(1).map(messageTypesOf);
    for (const type of textbook)
      for (const form of others) {
        const own = form.filter((other) => other === type || other.endsWith(`.${type}`) || type.endsWith(`.${other}`));
        if (own.length > 0) expect(own.map((other) => inkwell.of(other))).toContainEqual(inkwell.of(type));
      }
  });

  test("within a form no two messages look alike", () => {
    for (const types of formsOf(name).map(messageTypesOf)) {
      const looks = types.map((type) => JSON.stringify(inkwell.of(type)));
      expect(new Set(looks).size).toBe(types.length);
      expect(types.filter((type) => places[type] === undefined)).toEqual([]);
    }
  });
});
