/** The config file of a cluster that runs a single protocol from the registry. */
import { resolve } from "node:path";
import { protocolNamed } from "../protocols/index.ts";
import { type KeyFiles, needsKeys } from "../runtime/member-keys.ts";
import { type ClusterPlaces, parsePlaces, readWith, refusal, requireFields, requirePath, wrong } from "./config.ts";
import { type Fields, isFields } from "./fields.ts";
import { loadProtocol, registeredName } from "./protocol-file.ts";

/** The config of a cluster that runs a single protocol. */
export interface ClusterConfig extends ClusterPlaces {
  /** The protocol's name in the registry. For a file, its path relative to the working directory. */
  readonly protocol: string;
  /** The protocol's own options. */
  readonly options: object;
  /** The members' signing keys, if the protocol signs messages. */
  readonly keys?: KeyFiles;
}

const MAX_MEMBERS = 128;

/** @throws UsageError that names the file and the field */
export const readConfig = (file: string): ClusterConfig => readWith(parseConfig, file);

/**
 * Reads the config, and loads its protocol if that is a file.
 * @throws UsageError that names the file and the field, or the protocol's file
 */
export async function loadConfig(file: string): Promise<ClusterConfig> {
  const named = readWith((value, folder) => {
    const { protocol } = (value ?? {}) as Fields;
    return typeof protocol === "string" ? loadProtocol(protocol, folder) : Promise.resolve();
  }, file);
  await named;
  return readConfig(file);
}

/**
 * Validates the content of a config file. Paths in it are relative to `folder`.
 * @throws UsageError that names the field
 */
export function parseConfig(value: unknown, folder: string): ClusterConfig {
  let own: ProtocolFields | undefined;
  const places = parsePlaces(value, folder, {
    others: ["protocol", "options", "keys"],
    check(fields, problems) {
      own = problems.of(() => protocolFieldsOf(fields, folder));
    },
    maxMembers: MAX_MEMBERS,
  });
  return { ...places, ...(own as ProtocolFields) };
}

type ProtocolFields = Pick<ClusterConfig, "protocol" | "options" | "keys">;

function protocolFieldsOf({ protocol: named, options = {}, keys: given }: Fields, folder: string): ProtocolFields {
  if (typeof named !== "string") throw wrong("protocol", "the name of a protocol", named);
  const protocol = registeredName(named, folder);
  if (!isFields(options)) throw wrong("options", "an object", options);
  const keys = keysOf(given, folder);
  const made = protocolNamed(protocol).node(options); // This throws if an option is unknown.
  if (keys === undefined && needsKeys(made))
    throw refusal(
      `expected keys to be set, since ${protocol} signs its messages: { "own": "{id}.key", "all": "{id}.pub" }, which are PEM files with Ed25519 keys`,
    );
  return { protocol, options, ...(keys && { keys }) };
}

function keysOf(value: unknown, folder: string): KeyFiles | undefined {
  if (value === undefined) return undefined;
  const { own, all } = requireFields(value, "keys", "an object with own and all", ["own", "all"]);
  return { own: resolve(folder, requirePath(own, "keys.own")), all: resolve(folder, requirePath(all, "keys.all")) };
}
