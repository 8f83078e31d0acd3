/**
 * Has this member do what the list of members says: whom it calls, whom it lets in, whom its failure detector watches. The list comes
 * from the log; before the log has told it anything, from the journal.
 */
import type { NodeId } from "../../core/protocol.ts";
import { listed } from "../../protocols/service/coordination-service/member-list.ts";
import type { MemberList } from "../../protocols/service/coordination-service/member-words.ts";
import { type HostPort, parseHostPort } from "../../runtime/host-port.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import type { Membership } from "./membership.ts";
import type { SharedParts } from "./shared-parts.ts";
import type { ServiceHost } from "./state/service-host.ts";

export interface MemberDirectoryOptions {
  readonly service: ServiceHost;
  readonly shared: Pick<SharedParts, "watch">;
  readonly transport: Pick<TcpTransport<never>, "peers" | "setPeer" | "removePeer">;
  /** The list has changed. */
  onChanged(list: MemberList): void;
  /** This member is none any more. */
  onRemoved(): void;
}

type Of = Pick<Membership, "id" | "known" | "identity">;

export class MemberDirectory {
  readonly #of: Of;
  readonly #options: MemberDirectoryOptions;
  /** Where members have said that they are, and what the list said then. */
  readonly #said = new Map<NodeId, { readonly address: HostPort; readonly listed: string }>();
  /** Whose journals are being written down. */
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

  /** A member is about to be let in that is to be called there; it may know a later list than this one. */
  heardOf(node: NodeId, address: HostPort): void {
    const list = this.#of.known.list;
    if (list === null && this.#of.identity.isPeer(node)) return; // All have been started with one list.
    this.#said.set(node, { address, listed: addressOf(list, node) });
    this.#options.service.meet(node);
    this.#options.transport.setPeer(node, address);
  }

  #follow(list: MemberList): void {
    const { id: self, identity } = this.#of;
    const { service, shared, transport, onRemoved } = this.#options;
    identity.learn(list);
    if (identity.isRemoved(self)) return onRemoved();
    const others = list.members.filter(({ member }) => member !== self);
    for (const { member, address } of others) {
      service.meet(member);
      const said = this.#said.get(member);
      const place = said?.listed === address ? said.address : parseHostPort(address);
      if (place !== null) transport.setPeer(member, place);
    }
    for (const { id } of transport.peers) if (listed(list, id) === null) transport.removePeer(id);
    shared.watch(list);
  }

  /** The members agree on whose journal it is before anybody relies on it. */
  async #name(node: NodeId, journal: string): Promise<void> {
    const { service } = this.#options;
    if (this.#naming.has(node) || service.leader === null) return; // It calls again.
    this.#naming.add(node);
    try {
      await service.submit({ type: "nameJournal", member: node, journal }, () => false);
    } catch {
      // It calls again.
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
