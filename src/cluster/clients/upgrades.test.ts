/** Checks that a caller that requests a protocol upgrade, correctly or not, does not harm a member. */

import { rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join as path } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { authority } from "../../../test/network/certificates.ts";
import { memberWithClients, type Serving } from "../../../test/network/member-with-clients.ts";
import { PATIENCE } from "../../../test/patience.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await memberWithClients();
});
afterAll(async () => {
  await serving.member.leave();
  rmSync(serving.folder, { recursive: true, force: true });
});

const port = (): number => Number(new URL(serving.url).port);
const upgrade = (page: string, to: string, more = "") =>
  `GET ${page} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: ${to}\r\n${more}\r\n`;

/** Reads all bytes until the connection ends. */
function answer(socket: Socket, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (piece) => (text += piece.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
    socket.write(request);
  });
}

test("a refused caller that resets its connection does not end the member", async () => {
  for (let times = 0; times < 200; times++)
    await new Promise<void>((resolve) => {
      const socket = connect(port(), "127.0.0.1");
      socket.on("error", () => {});
      socket.on("close", () => resolve());
      socket.on("connect", () => socket.write(upgrade("/v1/nothing", "websocket"), () => socket.resetAndDestroy()));
    });
  expect((await fetch(`${serving.url}/v1/status`)).status).toBe(200);
});

test("a refused caller that does not close its side keeps no connection", async () => {
  const socket = connect({ port: port(), host: "127.0.0.1", allowHalfOpen: true });
  const gone = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.on("error", () => {});
  socket.resume();
  socket.write(upgrade("/v1/nothing", "websocket"));
  await new Promise((resolve) => socket.on("end", resolve));
  await vi.waitFor(() => {
    if (!socket.destroyed) socket.write("hello?"); // A closed connection answers with a reset.
    expect(socket.destroyed).toBe(true);
  }, PATIENCE);
  await gone;
});

test("answers a first request that asks for HTTP/2, as Java and curl do, in HTTP/1.1", async () => {
  const got = await answer(
    connect(port(), "127.0.0.1"),
    upgrade("/v1/status", "h2c", "http2-settings: AAMAAABk\r\nx: é\r\n") + closing,
  );
  expect(got.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2); // The pipelined request is answered too.
  expect(got).toContain('"cluster":');
});
const closing = "GET /v1/status HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";

test("reads a body that comes with the request, and after it", async () => {
  const socket = connect(port(), "127.0.0.1");
  const body = JSON.stringify({ value: "é".repeat(50_000) });
  const length = Buffer.byteLength(body);
  const head = upgrade(
    "/v1/maps/upgraded/keys/k",
    "h2c",
    `content-type: application/json\r\ncontent-length: ${length}\r\n`,
  );
  const got = answer(socket, head.replace("GET", "PUT") + body.slice(0, 10));
  socket.write(body.slice(10) + closing);
  expect((await got).match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2);
  const stands = await fetch(`${serving.url}/v1/maps/upgraded/keys/k`);
  expect(await stands.json()).toMatchObject({ value: "é".repeat(50_000) });
});

test("does so over TLS", async () => {
  const made = await authority("clients");
  const { cert, key } = await made.issue("localhost");
  const file = (name: string, text: string): string => {
    writeFileSync(path(serving.folder, name), text);
    return path(serving.folder, name);
  };
  const tls = { ca: file("ca.pem", made.cert), cert: file("own.pem", cert), key: file("own.key", key) };
  const guarded = await memberWithClients({ tls });
  const socket = connectTls({
    port: Number(new URL(guarded.url).port),
    host: "127.0.0.1",
    servername: "localhost",
    ca: made.cert,
  });
  const got = await answer(socket, upgrade("/v1/status", "h2c") + closing);
  expect(got.match(/HTTP\/1\.1 200 OK\r\n/g)).toHaveLength(2);
  await guarded.member.leave();
  rmSync(guarded.folder, { recursive: true, force: true });
});
