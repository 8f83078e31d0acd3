/** Checks `coterie member list`: its timeouts, and failing endpoints. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";
import { coterie } from "./run-here.ts";

const words = "no majority of the members is heard of";
const asked: (string | undefined)[] = [];
const server = createServer(({ url }, response) => {
  asked.push(url);
  response.writeHead(503, { "content-type": "application/json" }).end(JSON.stringify({ error: words, code: "x" }));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => void server.close());

const url = (port: number | undefined): string => `http://127.0.0.1:${port}`;
const own = (): string => url((server.address() as AddressInfo).port);

test("prints a member's answer, no matter where it is among endpoints without a listener", async () => {
  const [before, behind] = await freePorts(2);
  const member = own();
  const said = async (...endpoints: string[]) =>
    (await coterie("member", "list", "--endpoints", endpoints.join(","))).stderr;
  expect(await said(member, url(behind))).toBe(`coterie: ${words}\n`);
  expect(await said(url(before), member)).toBe(`coterie: ${words}\n`);
  expect(await said(url(before), url(behind))).toBe(
    `coterie: none of ${url(before)}, ${url(behind)} answered: ECONNREFUSED (set --endpoints or $COTERIE_ENDPOINTS)\n`,
  );
});

test("the member gets the timeout, also with WebSocket endpoints", async () => {
  asked.length = 0;
  const list = (endpoint: string, ...words: string[]) => coterie("member", "list", "--endpoints", endpoint, ...words);
  const { code, stderr } = await list(own().replace("http:", "ws:"), "--timeout", "2s");
  expect([code, stderr]).toEqual([1, `coterie: ${words}\n`]);
  await list(own());
  expect(asked).toEqual(["/v1/members?timeoutMs=2000", "/v1/members?timeoutMs=10000"]);
});

test("the error for a too long timeout, and the help, state the maximum", async () => {
  const endpoint = ["--endpoints", own()];
  for (const command of [
    ["member", "list", "--wait"],
    ["member", "remove", "1"],
    ["transfer", "1"],
  ]) {
    const { code, stderr } = await coterie(...command, "--timeout", "20m", ...endpoint);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("at most 10m, got") as string });
    const help = await coterie(...command.slice(0, -1), "--help");
    expect(help.stdout).toContain("10m at most");
  }
});
