/** A single-member cluster in this process that serves clients, with a token for each role. */
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { joinOn } from "../../src/cluster/join.ts";
import type { ClientsOptions, JoinOptions, Member } from "../../src/index.ts";
import type { Platform } from "../../src/runtime/platform/platform.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { freePorts } from "./free-ports.ts";

const sha256 = (token: string): string => createHash("sha256").update(token).digest("hex");

/** Writes the roles file. Each token has the name of its role. */
export function writeRoles(file: string, tokens: Readonly<Record<string, string>>): string {
  const list = Object.entries(tokens).map(([token, role]) => ({ name: token, role, sha256: sha256(token) }));
  writeFileSync(file, JSON.stringify({ tokens: list }));
  return file;
}

export interface Serving {
  readonly member: Member;
  readonly url: string;
  /** The member's folder. */
  readonly folder: string;
}

export async function memberWithClients(
  clients: Partial<ClientsOptions> = {},
  more: Partial<JoinOptions> = {},
  platform: Platform = realPlatform,
): Promise<Serving> {
  const folder = mkdtempSync(path(tmpdir(), "coterie-serving-"));
  const [own, port] = await freePorts(2);
  const member = await joinOn(platform, {
    id: 1,
    members: { 1: `127.0.0.1:${own}` },
    dataDir: path(folder, "data"),
    timing: "patient",
    clients: { listen: `127.0.0.1:${port}`, ...clients },
    log: { info() {}, warn() {}, error() {} },
    ...more,
  });
  return { member, url: member.clients as string, folder };
}
