/** Certificates as files: a member reads its own when it starts, and again while it runs. */
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { EnvironmentError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "../runtime/log.ts";
import type { Platform, Timer, TlsMaterial } from "../runtime/platform/platform.ts";
import type { ClusterConfig } from "./config.ts";

/** A renewal has days of time. */
const LOOK_EVERY_MS = 30_000;

export interface RenewalOptions {
  readonly platform: Pick<Platform, "timers">;
  readonly id: NodeId;
  /** Where the files are; null: there is no TLS. */
  readonly files: ClusterConfig["tls"];
  readonly log: Log;
  renew(tls: TlsMaterial): void;
}

/**
 * Reads the files again now and then, until `stop` is called: what has changed is used for new connections, and those that are open
 * stay. Files that cannot be used change nothing, and the log says so once.
 */
export class CertificateRenewal {
  readonly #options: RenewalOptions;
  readonly #timer: Timer | null;
  /** Null before the first look, which may already find others than those that the member has started with. */
  #used: TlsMaterial | null = null;
  #isLooking = false;

  constructor(options: RenewalOptions) {
    const { platform, files } = options;
    this.#options = options;
    this.#timer = files === null ? null : platform.timers.every(LOOK_EVERY_MS, () => void this.#look()).unref();
  }

  stop(): void {
    this.#options.platform.timers.cancel(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { files, id, log, renew } = this.#options;
    try {
      const found = await readTls(files, id);
      if (found === null || (this.#used !== null && isSame(found, this.#used))) return;
      createSecureContext(found); // A certificate and a key of which only one has been written yet do not fit together.
      renew(found);
      const isNew = this.#used !== null;
      this.#used = found;
      if (isNew) log.info("new connections use the renewed certificate", { event: "certificate-renewed" });
    } catch (error) {
      const text = `the certificate files cannot be used, and the certificate of before goes on: ${(error as Error).message}`;
      log.once("certificate-not-renewed", text, { event: "certificate-not-renewed" });
    } finally {
      this.#isLooking = false;
    }
  }
}

const isSame = (one: TlsMaterial, other: TlsMaterial): boolean =>
  one.ca === other.ca && one.cert === other.cert && one.key === other.key;

export async function readTls(tls: ClusterConfig["tls"], id: NodeId): Promise<TlsMaterial | null> {
  if (tls === null) return null;
  const read = (path: string): Promise<string> => readPem(path, id);
  return { ca: await read(tls.ca), cert: await read(tls.cert), key: await read(tls.key) };
}

/** `{id}` in the path stands for the member's id. */
export async function readPem(path: string, id: NodeId): Promise<string> {
  const file = path.replaceAll("{id}", String(id));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new EnvironmentError("cannot-read", `cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}
