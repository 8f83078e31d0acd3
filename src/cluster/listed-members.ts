/** The list of members as those say that run, beside the members of a config: one may know what the other does not. */
import type { NodeId } from "../core/protocol.ts";
import { type HostPort, parseHostPort } from "../runtime/host-port.ts";
import type { ServiceConfig } from "./config.ts";
import { type Finding, ok, warning } from "./finding.ts";
import type { AskedMember } from "./services-survey.ts";

export interface KnownList {
  readonly members: readonly NodeId[];
  readonly voters: readonly NodeId[];
  /** Where those are that the one which was asked is linked with. */
  readonly addresses: ReadonlyMap<NodeId, string>;
}

/** As the leader of the log has it, or who knows of one; where none does, as a member's journal has it, or the config. */
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
    voters: voters.length === 0 ? sorted : voters, // An older member does not say it.
    addresses: new Map(teller?.peers.map(({ id, address }) => [id, address])),
  };
}

/** Of each on the list, where the config says that it is, or the list. */
export function placesOf(
  config: ServiceConfig,
  { members, addresses }: KnownList,
): readonly { readonly member: NodeId; readonly address: HostPort }[] {
  return members.flatMap((member) => {
    const address = config.members[member]?.address ?? parseHostPort(addresses.get(member) ?? "");
    return address === null ? [] : [{ member, address }];
  });
}

/** In which members the two differ. */
export function listFindings(config: ServiceConfig, { members }: KnownList): readonly Finding[] {
  const configured = Object.keys(config.members).map(Number);
  const off = configured.filter((id) => !members.includes(id));
  const missing = members.filter((id) => !configured.includes(id));
  return [
    ...off.map((id) =>
      ok(`member ${id}`, "in this config and not on the list of members: it was removed, or has not been added yet"),
    ),
    ...missing.map((id) =>
      warning(
        `member ${id}`,
        "on the list of members and not in this config",
        "add it to this config: doctor and status do not ask it otherwise",
      ),
    ),
  ];
}
