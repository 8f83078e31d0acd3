/** What members say to each other is a promise to other releases: docs/compatibility.md says how it may change. */
import { expect, test } from "vitest";
import { epochBully } from "../../protocols/election/epoch-bully/epoch-bully.ts";
import { type AnyProtocol, embeddedNamed, heartbeat, protocolNamed, protocolNames } from "../../protocols/index.ts";
import { protocolHash, WIRE_VERSION } from "../../runtime/transport/frames.ts";
import { announcement, envelopeShape, messageForm } from "./algorithms.ts";
import type { FencedElection, TextbookElection } from "./api.ts";

const protocols = {
  detector: heartbeat() as never as AnyProtocol,
  leadership: epochBully() as never as AnyProtocol,
  service: null,
};

test("what members say besides messages of algorithms changes only with the wire version", () => {
  const hash = protocolHash("services", envelopeShape(protocols));
  expect({ version: WIRE_VERSION, hash }, "raise WIRE_VERSION, and go on speaking the version before").toEqual({
    version: 1,
    hash: 5228808365586187,
  });
});

test("an announcement says how the messages of its algorithm look", () => {
  const lock = { kind: "mutex", name: "report", algorithm: "elected-server", options: "{}" } as const;
  expect(announcement(lock).form).toBe(messageForm(lock));
  expect(messageForm(lock)).not.toBe(messageForm({ ...lock, algorithm: "central-server" }));
  expect(messageForm({ ...lock, algorithm: "of-tomorrow" })).toBe(0);
});

test("the types of elections are those of the registry: those with a floor under their epochs have tokens", () => {
  const fenced: Readonly<Record<FencedElection, true>> = { "epoch-bully": true, raft: true }; // On the log: in no registry.
  const textbook: Readonly<Record<TextbookElection, true>> = { bully: true, "chang-roberts": true, ring: true };
  const elections = protocolNames.filter(
    (name) => protocolNamed(name).family.name === "election" && embeddedNamed(name),
  );
  const hasTokens = (name: string): boolean => embeddedNamed(name)?.floor !== null;
  expect([...elections.filter(hasTokens), "raft"]).toEqual(Object.keys(fenced));
  expect(elections.filter((name) => !hasTokens(name))).toEqual(Object.keys(textbook));
});
