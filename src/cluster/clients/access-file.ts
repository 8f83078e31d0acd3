/** Clients' roles, read from a file of token hashes and certificate names. */
import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { Log } from "../../runtime/log.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import { firstProblem } from "../first-problem.ts";
import { type Role, roles } from "./client-words.ts";

const role = z.enum(roles, `one of ${roles.join(", ")}`);
const name = z.string("a name").min(1, "a name");
const sha256 = z.string("the SHA-256 of a token in hex").regex(/^[\da-f]{64}$/i, "the SHA-256 of a token in hex");
const file = z.strictObject(
  {
    tokens: z.array(z.strictObject({ name, role, sha256 }, "an object"), "a list").default([]),
    certificates: z.array(z.strictObject({ name, role }, "an object"), "a list").default([]),
  },
  "an object",
);

/** Finds a client's role by its credentials. */
export interface Access {
  /**
   * @param names the names in the client's certificate
   * @returns null if the client has no role
   */
  roleOf(token: string | null, names: readonly string[]): Role | null;
}

/** The same interval as for certificates. */
const LOOK_EVERY_MS = 30_000;

export interface AccessFileOptions {
  readonly path: string;
  readonly timers: Platform["timers"];
  readonly log: Log;
  /** Called when the roles of connected clients may have changed. */
  onChange(): void;
}

/**
 * The roles in the file, which is read again at intervals until `stop` is called. An invalid file changes nothing and
 * is logged once.
 */
export class AccessFile implements Access {
  readonly #options: AccessFileOptions;
  readonly #timer: Timer;
  #text: string;
  #access: Access;
  #isLooking = false;

  private constructor(text: string, options: AccessFileOptions) {
    this.#options = options;
    this.#access = accessOf(parsed(text, options.path), options.path);
    this.#text = text;
    this.#timer = options.timers.every(LOOK_EVERY_MS, () => void this.#look()).unref();
  }

  /** @throws EnvironmentError if the file cannot be read; UsageError if its content is invalid */
  static async open(options: AccessFileOptions): Promise<AccessFile> {
    return new AccessFile(await textIn(options.path), options);
  }

  roleOf(token: string | null, names: readonly string[]): Role | null {
    return this.#access.roleOf(token, names);
  }

  stop(): void {
    this.#options.timers.cancel(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { path, log, onChange } = this.#options;
    try {
      const text = await textIn(path);
      if (text === this.#text) return;
      this.#access = accessOf(parsed(text, path), path);
      this.#text = text;
      log.info(`${path} has changed: the new roles are in effect`, { event: "roles-renewed" });
      onChange();
    } catch (error) {
      const text = `cannot use the new roles file, so the previous roles remain in effect: ${(error as Error).message}`;
      log.once("roles-not-renewed", text, { event: "roles-not-renewed" });
    } finally {
      this.#isLooking = false;
    }
  }
}

async function textIn(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new EnvironmentError("cannot-read", `cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** @throws UsageError if the content is invalid */
function accessOf(value: unknown, path: string): Access {
  const read = file.safeParse(value);
  if (!read.success) throw new UsageError("bad-roles", `${path}: ${firstProblem(read.error, value, "the roles file")}`);
  const tokens = read.data.tokens.map((each) => ({ role: each.role, hash: Buffer.from(each.sha256, "hex") }));
  const { certificates } = read.data;
  return {
    roleOf(token, names) {
      const found = certificates.filter(({ name }) => names.includes(name)).map((each) => each.role);
      if (token !== null) {
        const hash = createHash("sha256").update(token).digest();
        // Compare with every hash, each in constant time, so that the duration reveals nothing.
        for (const known of tokens) if (timingSafeEqual(known.hash, hash)) found.push(known.role);
      }
      return found.length === 0 ? null : (roles[Math.max(...found.map((each) => roles.indexOf(each)))] ?? null);
    },
  };
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-roles", `expected ${path} to be JSON: ${(error as Error).message}`);
  }
}

/**
 * The access without a roles file, which is possible only on loopback addresses. Every program on this machine has the
 * role `admin`.
 */
export const everybody: Access = { roleOf: () => "admin" };

/** Whether a role includes the required one. */
export const mayDo = (has: Role, needs: Role): boolean => roles.indexOf(has) >= roles.indexOf(needs);
