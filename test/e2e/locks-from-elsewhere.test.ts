/**
 * Checks locks over HTTP for callers on other machines, whose crashes cannot be detected. See
 * docs/guide/locks-over-http.md.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as dial, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { join, type Member } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-elsewhere-"));
const sockets: Socket[] = [];
let member: Member;
let port = 0;

beforeAll(async () => {
  const [own = 0, clients = 0] = await freePorts(2);
  port = clients;
  const members = { 1: `127.0.0.1:${own}` };
  member = await join({ id: 1, members, dataDir: path(folder, "data"), clients: `127.0.0.1:${clients}` });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await member.leave();
  rmSync(folder, { recursive: true, force: true });
});

/** Acquires the lock, and then neither reads nor sends anything while the connection stays open. @returns the token */
async function vanished(lock: string, silenceMs?: number): Promise<number> {
  const socket = dial(port, "127.0.0.1");
  sockets.push(socket);
  const body = JSON.stringify({ silenceMs });
  socket.write(
    `POST /v1/locks/${lock} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  let text = "";
  while (!text.includes('"granted"')) text += String((await once(socket, "data"))[0]);
  socket.pause();
  return Number(/"token":(\d+)/.exec(text)?.[1]);
}

test("with silenceMs a caller that vanished loses its lock, though its connection stays; the next token is higher", async () => {
  const token = await vanished("report", 300);
  const next = await member.mutex("report").acquire();
  expect(next.token).toBeGreaterThan(token);
  expect(sockets.at(-1)?.readyState).toBe("open");
  await next.release();
});

test("without silenceMs it holds its lock until its connection ends", async () => {
  const token = await vanished("kept");
  const waiting = member.mutex("kept").acquire();
  await expect(member.mutex("kept").acquire({ timeoutMs: 1_000 })).rejects.toMatchObject({ code: "acquire-timeout" });
  sockets.at(-1)?.destroy();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(token);
  await next.release();
});
