/** Checks that a running member rereads its certificates: for its links, the port for clients, and its admin pages. */

import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { connect } from "node:tls";
import { Registry } from "prom-client";
import { afterAll, expect, test, vi } from "vitest";
import { authority } from "../../test/network/certificates.ts";
import { freePorts } from "../../test/network/free-ports.ts";
import { PATIENCE } from "../../test/patience.ts";
import { connect as connectClient } from "../client/node.ts";
import type { Platform, TlsMaterial } from "../runtime/platform/platform.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { joinOn } from "./join.ts";

const folder = mkdtempSync(path(tmpdir(), "coterie-renewed-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs timers of 30 s immediately. */
const hurried: Platform = {
  ...realPlatform,
  timers: { ...realPlatform.timers, every: (ms, run) => realPlatform.timers.every(ms === 30_000 ? 20 : ms, run) },
};

const files = { ca: path(folder, "ca.pem"), cert: path(folder, "node-{id}.pem"), key: path(folder, "node-{id}.key") };

function write({ ca, cert, key }: TlsMaterial): void {
  const texts = { [files.ca]: ca, [files.cert]: cert, [files.key]: key };
  for (const [file, text] of Object.entries(texts)) writeFileSync(file.replace("{id}", "1"), text);
}

async function serialShown(port: number, own: TlsMaterial): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...own });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerX509Certificate() as X509Certificate;
  socket.destroy();
  return serialNumber;
}

test("links, clients and admin pages use renewed certificates, and metrics report their expiry", async () => {
  const ours = await authority("ours");
  const issue = (days: number): Promise<TlsMaterial> => ours.issueFor(days, "node-1", "127.0.0.1");
  const [first, second] = await Promise.all([issue(40), issue(80)]);
  write(first);
  const [one, clients, admin] = (await freePorts(3)) as [number, number, number];
  const registry = new Registry();
  const member = await joinOn(hurried, {
    id: 1,
    members: { 1: `127.0.0.1:${one}` },
    dataDir: path(folder, "data"),
    tls: files,
    clients: { listen: `127.0.0.1:${clients}`, tls: files },
    admin: { address: `127.0.0.1:${admin}`, tls: files },
    registry,
    log: { info() {}, warn() {}, error() {} },
  });
  const ports = [one, clients, admin];
  const shown = (): Promise<string[]> => Promise.all(ports.map((port) => serialShown(port, first)));
  const daysLeft = async (): Promise<number[]> => {
    const lines = [...(await registry.metrics()).matchAll(/^coterie_certificate_days_left\{use="\w+"\} (.*)$/gm)];
    return lines.map(([, days]) => Math.round(Number(days)));
  };
  expect(await shown()).toEqual(ports.map(() => new X509Certificate(first.cert).serialNumber));
  await vi.waitFor(async () => expect(await daysLeft()).toEqual([40, 40, 40]), PATIENCE);
  const client = await connectClient({ endpoints: [member.clients as string], tls: { ca: first.ca } });
  await client.map("m").put("k", 1);
  const { moves } = client.status();

  write(second);
  await vi.waitFor(async () => {
    expect(await shown()).toEqual(ports.map(() => new X509Certificate(second.cert).serialNumber));
    expect(await daysLeft()).toEqual([80, 80, 80]);
  }, PATIENCE);
  expect(await client.map("m").get("k")).toBe(1);
  expect(client.status().moves).toBe(moves); // The client's connection stayed open.
  await client.close();
  await member.leave();
});
