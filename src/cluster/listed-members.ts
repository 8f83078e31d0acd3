/** Compares the running members' member list with a config. Each may contain members that the other lacks. */
import type { NodeId } from "../core/protocol.ts";
import { type HostPort, parseHostPort } from "../runtime/host-port.ts";
import type { ServiceConfig } from "./config.ts";
import { type Finding, ok, warning } from "./finding.ts";
import type { AskedMember } from "./services-survey.ts";

/** The member list as running members report it. */
export interface KnownList {
  readonly members: readonly NodeId[];
  readonly voters: readonly NodeId[];
  /** The addresses of the members that the answering member is connected to. */
  readonly addresses: ReadonlyMap<NodeId, string>;
}

/**
 * Returns the list from the leader of the log or, failing that, from any member that has one. If there is no such
 * member, returns the list in a member's journal or in the config.
 */
export function listFrom({ members }: ServiceConfig, asked: readonly AskedMember[]): KnownList {
  const answers = asked.flatMap(({ known }) => known ?? []);
  const teller =
    answers.find(({ id, leader }) => leader === id) ??
    answers.find(({ leader }) => leader !== null) ??
    answers.find(({ voters }) => voters.length > 0);
  const ids =
    teller === undefined ? Object.keys(members).map(Number) : [teller.id, ...teller.peers.map(({ id }) => id)];
  const sorted = ids.sort((a, b) => a - b);
  const voters = teller?.voters.filter((id) => ids.includes(id)) ?? [];
  return {
    members: sorted,
    voters: voters.length === 0 ? sorted : voters, // Older members omit the voters.
    addresses: new Map(teller?.peers.map(({ id, address }) => [id, address])),
  };
}

/** Returns the address of each member on the list, from the config or, failing that, from the list. */
export function placesOf(
  config: ServiceConfig,
  { members, addresses }: KnownList,
): readonly { readonly member: NodeId; readonly address: HostPort }[] {
  return members.flatMap((member) => {
    const address = config.members[member]?.address ?? parseHostPort(addresses.get(member) ?? "");
    return address === null ? [] : [{ member, address }];
  });
}

/** Reports differences between the config and the list. */
export function listFindings(config: ServiceConfig, { members }: KnownList): readonly Finding[] {
  const configured = Object.keys(config.members).map(Number);
  const off = configured.filter((id) => !members.includes(id));
  const missing = members.filter((id) => !configured.includes(id));
  return [
    ...off.map((id) =>
      ok(`member ${id}`, "in this config but not in the member list: it was removed, or has not been added yet"),
    ),
    ...missing.map((id) =>
      warning(
        `member ${id}`,
        "in the member list but not in this config",
        "add it to this config; otherwise, doctor and status do not query it",
      ),
    ),
  ];
}
