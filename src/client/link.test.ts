/** Checks endpoints that the platform refuses to dial. A client tries the next one. */
import { expect, test } from "vitest";
import { CLIENT_VERSION } from "../cluster/clients/client-words.ts";
import type { CoordinationError } from "../cluster/services/coordination-error.ts";
import { connectOn } from "./client.ts";
import { connect as connectInBrowser } from "./index.ts";
import type { Dial } from "./link.ts";
import { connect } from "./node.ts";
import { surroundings } from "./surroundings.ts";

const GOOD = "http://good.example";
const BAD = ["http://bad-1.example", "http://bad-2.example"];

/** Connects to a member at one endpoint. Connections to the others throw at once. */
const dialGood: Dial = (endpoint, ear) => {
  if (endpoint !== GOOD) throw new SyntaxError("this port is not allowed");
  setTimeout(() => ear.opened(), 0);
  return {
    send(text) {
      const word = JSON.parse(text) as { type: string };
      const welcome = { type: "welcome", version: CLIENT_VERSION, member: 7, client: 2 ** 40, role: "read" };
      if (word.type === "hello") setTimeout(() => ear.heard(JSON.stringify(welcome)), 0);
    },
    close() {},
  };
};

test("skips an endpoint that cannot be dialed", async () => {
  const client = await connectOn(surroundings, dialGood, { endpoints: [...BAD, GOOD], discover: false });
  expect(client.status().member).toBe(7);
  await client.close();
});

test("reports a timeout when no endpoint can be dialed", async () => {
  const refused = connectOn(surroundings, dialGood, { endpoints: BAD, timeoutMs: 500 });
  await expect(refused).rejects.toMatchObject({
    code: "no-endpoint",
    message: expect.stringMatching(/accepted this client within 500 ms: this port is not allowed$/),
  } satisfies Partial<CoordinationError>);
});

test.each([
  ["node", connect],
  ["browsers", connectInBrowser],
])("rejects an invalid port at once, with %s", async (_where, connectThere) => {
  await expect(async () => connectThere({ endpoints: ["http://127.0.0.1:99999"] })).rejects.toMatchObject({
    code: "bad-option",
    message: expect.stringMatching(/^expected an endpoint of connect\(\) to be a URL .* 1 to 65535, got "http/),
  });
});

test("rejects invalid certificates at once", async () => {
  const refused = connect({ endpoints: ["https://127.0.0.1:7300"], tls: { ca: "garbage", cert: "x", key: "y" } });
  await expect(refused).rejects.toMatchObject({
    code: "bad-option",
    message: expect.stringMatching(
      /^expected tls of connect\(\) to be valid PEM, with a key that matches the certificate: /,
    ),
  });
});
