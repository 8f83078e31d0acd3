/** What members say to each other is a promise to other releases: docs/compatibility.md says how it may change. */
import { expect, test } from "vitest";
import { epochBully } from "../../protocols/election/epoch-bully/epoch-bully.ts";
import { type AnyProtocol, heartbeat } from "../../protocols/index.ts";
import { protocolHash, WIRE_VERSION } from "../../runtime/transport/frames.ts";
import { announcement, envelopeShape, messageForm } from "./algorithms.ts";

const parts = [heartbeat(), epochBully()].map((part) => part as never as AnyProtocol) as [AnyProtocol, AnyProtocol];

test("what members say besides messages of algorithms changes only with the wire version", () => {
  const hash = protocolHash("services", envelopeShape(...parts));
  expect({ version: WIRE_VERSION, hash }, "raise WIRE_VERSION, and go on speaking the version before").toEqual({
    version: 3,
    hash: 5261392821680123,
  });
});

test("an announcement says how the messages of its algorithm look", () => {
  const lock = { kind: "mutex", name: "report", algorithm: "elected-server", options: "{}" } as const;
  expect(announcement(lock).form).toBe(messageForm(lock));
  expect(messageForm(lock)).not.toBe(messageForm({ ...lock, algorithm: "central-server" }));
  expect(messageForm({ ...lock, algorithm: "of-tomorrow" })).toBe(0);
});
