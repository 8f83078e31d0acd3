/**
 * Checks the format of messages between members. It is a promise to other releases, and docs/operate/upgrade.md
 * describes how it may change.
 */
import { expect, test } from "vitest";
import { heartbeat } from "../../protocols/index.ts";
import { coordinationService } from "../../protocols/service/coordination-service/coordination-service.ts";
import { protocolHash, WIRE_VERSION } from "../../runtime/transport/frames.ts";
import { envelopeShape } from "./envelope.ts";

test("messages between members, except for evolving algorithms, change only with the wire version", () => {
  const hash = protocolHash("services", envelopeShape(heartbeat(), coordinationService()));
  expect({ version: WIRE_VERSION, hash }, "raise WIRE_VERSION, and keep speaking the version before").toEqual({
    version: 1,
    hash: 197580633568982,
  });
});
