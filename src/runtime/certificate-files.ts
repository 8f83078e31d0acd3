/** Reads certificate files. A member reads its own files when it starts and checks them for changes while it runs. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { EnvironmentError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "./log.ts";
import type { CertificateUse, Counts } from "./metrics.ts";
import type { Platform, Timer, TlsMaterial } from "./platform/platform.ts";

/** How often to check the files. A renewed certificate is usually available days before the old one expires. */
const LOOK_EVERY_MS = 30_000;
const DAY_MS = 86_400_000;
const SOON_MS = 14 * DAY_MS;

/**
 * The paths of a member's certificate, its key, and the CA certificate that all members share. `{id}` is replaced with
 * the member's id.
 */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** The paths of PEM files, or their contents. */
export interface Pems {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

export interface RenewalOptions<P extends Pems> {
  readonly platform: { readonly timers: Platform["timers"]; readonly clock: Pick<Platform["clock"], "wall"> };
  readonly id: NodeId;
  readonly use: CertificateUse;
  /** The paths of the files. Null: no TLS. */
  readonly files: P | null;
  readonly counts: Pick<Counts, "certificateDays">;
  readonly log: Log;
  renew(tls: P): void;
}

/**
 * Checks the files regularly until `stop` is called. Changed certificates are used for new connections; open
 * connections stay open. If the files cannot be used, nothing changes, and the problem is logged once. Also warns when
 * a certificate is about to expire or has expired.
 */
export class CertificateRenewal<P extends Pems> {
  readonly #options: RenewalOptions<P>;
  readonly #timer: Timer | null;
  /**
   * The PEM data in use. Null before the first check. The files may already have changed between the member's start and
   * that check.
   */
  #used: P | null = null;
  #isLooking = false;

  constructor(options: RenewalOptions<P>) {
    const { platform, files } = options;
    this.#options = options;
    this.#timer = files === null ? null : platform.timers.every(LOOK_EVERY_MS, () => void this.#look()).unref();
    if (files !== null) void this.#look();
  }

  stop(): void {
    this.#options.platform.timers.cancel(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { files, id, log, renew } = this.#options;
    try {
      if (files === null) return;
      const found = await readPems(files, id);
      if (this.#used === null || !isSame(found, this.#used)) {
        createSecureContext(found); // Throws if only the new certificate or only its new key has been written so far.
        renew(found);
        const isNew = this.#used !== null;
        this.#used = found;
        if (isNew) log.info("new connections use the renewed certificate", { event: "certificate-renewed" });
      }
      this.#noteEnd(found);
    } catch (error) {
      const text = `cannot use the new certificate files, so the previous certificate stays in use: ${(error as Error).message}`;
      log.once("certificate-not-renewed", text, { event: "certificate-not-renewed" });
    } finally {
      this.#isLooking = false;
    }
  }

  #noteEnd({ cert }: P): void {
    const { files, id, use, counts, log, platform } = this.#options;
    const { validTo } = new X509Certificate(cert);
    const leftMs = Date.parse(validTo) - platform.clock.wall();
    counts.certificateDays[use] = leftMs / DAY_MS;
    if (leftMs > SOON_MS) return;
    const when =
      leftMs < 0 ? "has expired: it was valid" : `expires in ${Math.floor(leftMs / DAY_MS)} days: it is valid`;
    const file = files?.cert.replaceAll("{id}", String(id));
    const text = `the certificate that this member presents to ${SHOWN_TO[use]} ${when} until ${validTo}; replace ${file} and its key, and the running member will reload them`;
    log.once(`certificate ${use} ${leftMs < 0}`, text, {
      event: leftMs < 0 ? "certificate-expired" : "certificate-expires",
    });
  }
}

const SHOWN_TO: Readonly<Record<CertificateUse, string>> = {
  members: "other members",
  clients: "clients",
  admin: "visitors to its admin pages",
  etcd: "clients of etcd's API",
};

const isSame = (one: Pems, other: Pems): boolean =>
  one.ca === other.ca && one.cert === other.cert && one.key === other.key;

/** Reads a member's certificate files. Null: no TLS. */
export async function readTls(tls: TlsFiles | null, id: NodeId): Promise<TlsMaterial | null> {
  return tls && readPems(tls, id);
}

/**
 * Reads PEM files. `{id}` in a path is replaced with the member's id.
 * @throws EnvironmentError if a file cannot be read
 */
export async function readPems<P extends Pems>(files: P, id: NodeId): Promise<P> {
  const { cert, key, ca } = files;
  const texts = { cert: await readPem(cert, id), key: await readPem(key, id) };
  return (ca === undefined ? texts : { ...texts, ca: await readPem(ca, id) }) as P;
}

async function readPem(path: string, id: NodeId): Promise<string> {
  const file = path.replaceAll("{id}", String(id));
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new EnvironmentError("cannot-read", `cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}
