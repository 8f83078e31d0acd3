/**
 * Applies the member list, which determines the members that this one connects to, accepts, and watches with its
 * failure detector. The list comes from the log or, before the log has been read, from the journal.
 */
import type { NodeId } from "../../core/protocol.ts";
import { listed } from "../../protocols/service/coordination-service/member-list.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import { type HostPort, parseHostPort } from "../../runtime/host-port.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { MemberDetector } from "./member-detector.ts";
import type { Membership } from "./membership.ts";
import type { ServiceHost } from "./state/service-host.ts";

export interface MemberDirectoryOptions {
  readonly service: ServiceHost;
  readonly detector: Pick<MemberDetector, "watch">;
  readonly transport: Pick<TcpTransport<never>, "peers" | "setPeer" | "removePeer">;
  /** Called when the list has changed. */
  onChanged(list: MemberList): void;
  /** Called when this member has been removed. */
  onRemoved(): void;
}

type Of = Pick<Membership, "id" | "known" | "identity">;

/** Updates links and the failure detector according to the member list. */
export class MemberDirectory {
  readonly #of: Of;
  readonly #options: MemberDirectoryOptions;
  /** The address that each member sent when it connected, and its address on the list at that time. */
  readonly #said = new Map<NodeId, { readonly address: HostPort; readonly listed: string }>();
  /** Members whose journals are being registered in the log. */
  readonly #naming = new Set<NodeId>();

  constructor(of: Of, options: MemberDirectoryOptions) {
    this.#of = of;
    this.#options = options;
    const { known, identity } = of;
    const { service } = options;
    identity.onFirstCall = (node, journal) => void this.#name(node, journal);
    identity.onRemoved = (by) => this.#removedBy(by);
    service.listen((event) => {
      if (event.type !== "members" || !known.note(event.list)) return;
      this.#follow(event.list);
      options.onChanged(event.list);
    });
    if (known.list !== null) this.#follow(known.list);
  }

  /**
   * Called before a connection from a member is accepted, with the address at which it can be reached. The member may
   * have a later list.
   */
  heardOf(node: NodeId, address: HostPort): void {
    const { service, transport } = this.#options;
    const { list } = this.#of.known;
    this.#said.set(node, { address, listed: addressOf(list, node) });
    service.meet(node);
    // Without a list, use the configured address too: the founder may still be there, or may have moved since.
    const known = list === null ? transport.peers.find(({ id }) => id === node) : undefined;
    const place = parseHostPort(known?.address ?? "");
    if (place === null) transport.setPeer(node, address);
    else transport.setPeer(node, place, address);
  }

  #follow(list: MemberList): void {
    const { id: self, identity } = this.#of;
    const { service, detector, transport, onRemoved } = this.#options;
    identity.learn(list);
    if (identity.isRemoved(self)) return onRemoved();
    const others = list.members.filter(({ member }) => member !== self);
    for (const { member, address } of others) {
      service.meet(member);
      const [place, ...others] = this.#placesOf(member, address);
      if (place !== undefined) transport.setPeer(member, place, ...others);
    }
    for (const { id } of transport.peers) if (listed(list, id) === null && !this.#isAhead(id)) transport.removePeer(id);
    detector.watch(list);
  }

  /**
   * Returns the possible addresses of a member. The list may reflect a new address late, so the address that the member
   * sent may be older or newer than the one on the list. If they may differ, returns both.
   */
  #placesOf(member: NodeId, address: string): HostPort[] {
    const said = this.#said.get(member);
    if (said?.listed === address) return [said.address];
    const place = parseHostPort(address);
    return [place, said?.address].filter((each) => each !== null && each !== undefined);
  }

  /** Whether the member has a later list, which may include itself. */
  #isAhead(node: NodeId): boolean {
    return this.#said.get(node)?.listed === "" && !this.#of.identity.isRemoved(node);
  }

  /** Records a new member's journal in the log. Until then, members do not exchange messages with it. */
  async #name(node: NodeId, journal: string): Promise<void> {
    const { service } = this.#options;
    if (this.#naming.has(node) || service.leader === null) return; // The member will call again.
    this.#naming.add(node);
    try {
      await service.submit({ type: "nameJournal", member: node, journal }, () => false);
    } catch {
      // The member will call again.
    } finally {
      this.#naming.delete(node);
    }
  }

  #removedBy(by: NodeId): void {
    const { id, known, identity } = this.#of;
    if (!identity.isPeer(by)) return;
    known.noteRemoved(id);
    this.#options.onRemoved();
  }
}

const addressOf = (list: MemberList | null, node: NodeId): string =>
  list === null ? "" : (listed(list, node)?.address ?? "");
