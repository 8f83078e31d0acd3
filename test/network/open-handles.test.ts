import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { expectNothingLeft, handlesAtRest } from "./open-handles.ts";

test("waits for a server that closes after the timer of an earlier test has fired", async () => {
  const timer = setTimeout(() => {}, 60_000);
  const before = await handlesAtRest();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  clearTimeout(timer);
  setImmediate(() => server.close());
  let closed = false;
  server.once("close", () => {
    closed = true;
  });
  await expectNothingLeft(before);
  expect(closed).toBe(true);
});
