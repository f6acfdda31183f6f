import type { EndpointReport, ListReport, ServiceReport, StatusReport } from '../inspect/api.ts';
import { isStopped } from '../inspect/explanation-words.ts';
import { showAffinity } from './affinity.ts';
import { type Command, type CommandContext, print } from './command.ts';
import { diffText } from './diff.ts';
import { explanationText } from './explanation-text.ts';
import {
  affinityFlags,
  bundleFlag,
  fileFlag,
  flowFlags,
  interfaceFlag,
  liveFlag,
  namespaceFlag,
  namespaceFlags,
  offlineFlags,
  portFlag,
  sinceFlag,
  topFlags,
  traceFlags,
  watchFlags,
} from './flags.ts';
import { showFlows } from './flows.ts';
import { showJournal } from './journal.ts';
import { readPacket } from './packet-argument.ts';
import { namespaceOf, requireSome, selectDifferences, selectorOf } from './selector.ts';
import { isServiceDestination, packetToService } from './service-destination.ts';
import { endpointColumns, serviceColumns, serviceDetailsText, servicesText } from './services.ts';
import type { AskedPacket } from './source.ts';
import { lasting, statusText } from './status.ts';
import { itemsText } from './table.ts';
import { EXIT_DIFFERS, EXIT_ERROR, EXIT_OK, type ExitCode } from './terminal.ts';
import { watchTop } from './top.ts';
import { versionReport, versionText } from './version.ts';
import { answerChanges, type Listing, listChanges, watch } from './watch.ts';

/** Shared by the commands that show all service ports, or those of one name. */
const named = {
  usage: '[NAME]',
  arguments: { least: 0, most: 1 },
  details: `NAME is a Service as NAME or NAMESPACE/NAME, or one of its ports as NAMESPACE/NAME:PORT. It may also be an address:
a cluster IP, an external IP, a load balancer IP or an endpoint, as IP or IP:PORT, or an address of this node with a
node port.`,
  flags: [...namespaceFlags, bundleFlag, ...offlineFlags],
  hasNames: true,
  completes: ['service'],
} satisfies Partial<Command>;

const status: Command = {
  name: 'status',
  usage: '',
  arguments: { least: 0, most: 0 },
  summary: 'state of the proxy: health, last sync, failures, repairs, objects that it cannot program',
  details: `Exits with 2 when the proxy is unhealthy or has not listed its objects yet.
With --watch it shows each change but syncs that go well.`,
  flags: [...watchFlags, bundleFlag],
  hasNames: false,
  completes: [],
  async run(context) {
    const { options, source, paint, layout } = context;
    const look = () => source.status();
    const textOf = (report: StatusReport) => statusText(report, paint, layout);
    let report = await look();
    if (options.watch) report = await watch(context, report, look, answerChanges(context, lasting, textOf));
    else print(context, report, () => textOf(report));
    return report.state === 'healthy' ? EXIT_OK : EXIT_DIFFERS;
  },
};

const services: Command = {
  ...named,
  name: 'services',
  summary: 'service ports and the decisions for their traffic; with a name, in detail and with reasons',
  flags: [...watchFlags, ...named.flags],
  async run(context) {
    const { source, paint, layout } = context;
    const selector = selectorOf(context);
    const listing: Listing<ServiceReport> = {
      columns: serviceColumns(paint),
      keyOf: ({ service, family }) => `${service} ${family}`,
      nameOf: ({ service }) => service,
    };
    const isDetailed = selector.name !== undefined && !layout.isWide;
    return showList(context, listing, {
      look: () => source.services(selector),
      async check({ items }) {
        requireSome(items, selector);
      },
      text: (items) =>
        isDetailed ? serviceDetailsText(items, paint, layout) : servicesText(items, paint, layout),
    });
  },
};

const endpoints: Command = {
  ...named,
  name: 'endpoints',
  summary: 'endpoints of service ports, and why each takes traffic or does not',
  flags: [...watchFlags, ...named.flags],
  async run(context) {
    const { source, paint, layout } = context;
    const selector = selectorOf(context);
    const listing: Listing<EndpointReport> = {
      columns: endpointColumns(paint),
      keyOf: ({ service, endpoint }) => `${service} ${endpoint}`,
      nameOf: ({ endpoint }) => endpoint,
    };
    return showList(context, listing, {
      look: () => source.endpoints(selector),
      async check({ items }) {
        if (items.length === 0) requireSome((await source.services(selector)).items, selector);
      },
      text: (items) => itemsText(listing.columns, items, layout),
    });
  },
};

const top: Command = {
  ...named,
  name: 'top',
  summary: 'new and open connections, bytes per second and failures: by Service, endpoint or client',
  details: `${named.details}
With NAME it shows the endpoints, with the share of new connections that each should get and the share that it got; "high"
or "low" marks a difference that chance does not explain. NEW/S is new connections per second, IN is from clients to
endpoints, OUT the answers. A flow of UDP counts as a connection. FAILED has what became of failed connections:
rejected (no endpoint), dropped (policy Local), filtered (source ranges), reset (by the endpoint), unanswered.
The proxy counts only while somebody asks, so figures begin with the command. Ctrl-C ends it, or --count; in a pipe it
ends by itself, after one --interval.

Examples:
  kube-proxyctl top --sort bytes
  kube-proxyctl top shop/web
  kube-proxyctl top shop/web --by client -o json`,
  flags: [...topFlags, ...namespaceFlags],
  run: watchTop,
};

const flows: Command = {
  ...named,
  name: 'flows',
  usage: '[NAME|IP|IP:PORT]',
  summary: 'connections through Services: client, Service, endpoint, state, age and bytes; -w follows them',
  details: `NAME is a Service as NAME or NAMESPACE/NAME, or one of its ports as NAMESPACE/NAME:PORT. IP and IP:PORT are an address
of a client, of a Service, or of an endpoint.
With --watch it shows openings and ends from now on, one line each, and connections that the proxy refuses or drops
with the reason. The end of a TCP connection is shown when the kernel forgets it, up to two minutes later. --count counts
events, and --interval is the time between two attempts to reach a proxy that restarts.

Examples:
  kube-proxyctl flows shop/web --state SYN_SENT
  kube-proxyctl flows -w --client 10.244.1.7
  kube-proxyctl flows -w -o json`,
  flags: [...flowFlags, ...watchFlags, ...namespaceFlags],
  run: showFlows,
};

const affinity: Command = {
  ...named,
  name: 'affinity',
  summary: 'clients that are bound to an endpoint by client affinity, and for how long still',
  details: `${named.details}
Only Services with sessionAffinity: ClientIP bind clients. TIME LEFT is the time until the binding ends, if the client opens
no further connection; the clients that called last come first. In ipvs mode a binding holds for one address (FRONTEND).

Examples:
  kube-proxyctl affinity shop/web
  kube-proxyctl affinity shop/web --client 10.244.1.7
  kube-proxyctl affinity --endpoint 10.244.2.9 -o json`,
  flags: [...affinityFlags, ...namespaceFlags],
  run: showAffinity,
};

/** The packet of `explain`; asks for the address when its destination is a Service. */
async function packetOf({ args, options, source: reports }: CommandContext): Promise<AskedPacket> {
  const [source = '', destination = ''] = args;
  if (!isServiceDestination(destination)) return readPacket(source, destination);
  const { items } = await reports.services({ name: destination, ...namespaceOf(options) });
  return packetToService(
    source,
    destination,
    sorted(items, ({ family }) => family),
  );
}

const explain: Command = {
  name: 'explain',
  usage: 'SRC DST[:PORT][/PROTO]',
  arguments: { least: 2, most: 2 },
  summary: 'what happens to the first packet of a connection, why, and whether the kernel agrees',
  details: `SRC is the address that the packet comes from, or "node" for the node itself. DST:PORT is where it goes, with
IPv6 addresses in brackets. PROTO is TCP, UDP or SCTP; without it, TCP. DST may also be a Service as NAME or
NAMESPACE/NAME: then it means the cluster IP, and PORT, its name or number, is needed only where there are several.
Exits with 2 when the kernel does not do what the proxy decided, and when a rule of another program certainly stops the
packet.

Examples:
  kube-proxyctl explain 10.244.1.7 10.96.0.10:53/UDP
  kube-proxyctl explain node [fd00:96::a]:443
  kube-proxyctl explain node shop/web:80
  kube-proxyctl explain --manifests shop/ --node node-1 203.0.113.9 192.0.2.1:30080`,
  flags: [interfaceFlag, liveFlag, namespaceFlag, bundleFlag, ...offlineFlags],
  hasNames: false,
  completes: ['source', 'service'],
  async run(context) {
    const { options, source, paint } = context;
    const report = await source.explain({
      ...(await packetOf(context)),
      ...(options.interface !== '' && { interface: options.interface }),
    });
    const isProblem = report.differences.length > 0 || isStopped(report);
    if (!options.live) {
      print(context, report, () => explanationText(report, paint));
      return isProblem ? EXIT_DIFFERS : EXIT_OK;
    }
    // Loaded only when needed: it talks to the kernel.
    const { sendLive, liveText } = await import('./live/live.ts');
    const live = await sendLive(report, context.clock);
    const text = () => explanationText(report, paint) + liveText(report, live, paint);
    print(context, { ...report, live }, text);
    return isProblem || (live.differences?.length ?? 0) > 0 ? EXIT_DIFFERS : EXIT_OK;
  },
};

const trace: Command = {
  name: 'trace',
  usage: 'SERVICE|SRC DST[:PORT][/PROTO]',
  arguments: { least: 1, most: 2 },
  summary: 'follows real packets through the rules of all programs: where each went, and who dropped it',
  details: `SERVICE is a Service as NAME or NAMESPACE/NAME, or one of its ports as NAMESPACE/NAME:PORT: packets to all its
addresses and node ports are followed. SRC is an address, a CIDR, or "node" for the node itself. DST is an address, with
IPv6 in brackets before a PORT, or a Service. Only the first packet of each connection is followed.
It runs on the node as root (CAP_NET_ADMIN). For the time of the trace it adds a table of nf_tables that marks packets
and changes none of them. SRC DST also works while kube-proxy is down.
Exits with 2 when a packet was dropped, rejected, lost, or not answered.

Examples:
  kube-proxyctl trace shop/web
  kube-proxyctl trace --for 1m --packets 20 10.244.0.0/16 10.96.0.10:53/UDP
  kube-proxyctl trace -o wide node shop/web:http`,
  flags: [...traceFlags, namespaceFlag, ...offlineFlags],
  hasNames: false,
  completes: ['service', 'service'],
  runsOnNode: true,
  async run(context) {
    // Loaded only when needed: it talks to the kernel.
    const { showTrace } = await import('./trace/trace.ts');
    return showTrace(context);
  },
};

const diff: Command = {
  ...named,
  name: 'diff',
  summary: 'differences between the kernel and the decisions of the proxy',
  details: `${named.details}
Exits with 2 when anything differs, with 1 when the kernel cannot be read.

Examples, while kube-proxy is down:
  kube-proxyctl diff --without-proxy --config /var/lib/kube-proxy/config.conf
  kube-proxyctl diff --kubeconfig /etc/kubernetes/kubelet.conf --proxy-mode nftables
  kube-proxyctl diff --manifests shop/ --proxy-mode nftables`,
  async run(context) {
    const selector = selectorOf(context);
    const selected = selector.name === undefined ? [] : (await context.source.services(selector)).items;
    const known = new Set(selected.map(({ service }) => service));
    const report = selectDifferences(await context.source.diff(), selector, known);
    if (report.items.length === 0) requireSome(selected, selector);
    print(
      context,
      report,
      () => diffText(report, context.paint),
      () => report.items.flatMap(({ service }) => service ?? []),
    );
    if (report.items.length > 0) return EXIT_DIFFERS;
    return report.families.some(({ error }) => error !== null) ? EXIT_ERROR : EXIT_OK;
  },
};

const journal: Command = {
  ...named,
  name: 'journal',
  summary:
    'what happened in the last hour: changes and their latency, syncs, repairs, problems, configuration',
  details: `${named.details}
Without NAME, everything. FROM API is the longest time from a change of endpoints in the API until the kernel had it.
Events of one kind within a second share a line, which names the first few Services.
With --watch it goes on and shows what is added.`,
  flags: [sinceFlag, ...watchFlags, ...namespaceFlags, bundleFlag],
  hasNames: false,
  run: showJournal,
};

const bundle: Command = {
  name: 'bundle',
  usage: '',
  arguments: { least: 0, most: 0 },
  summary:
    'writes one archive for a support case: everything that the other commands show, rules, metrics, log',
  details: `The archive has status, services, endpoints, diff, traffic, journal, facts of the node, configuration, metrics, the
last log lines, and the rules of the kernel as nft and iptables-save list them; contents.json says what is missing and
why. Tokens, passwords, keys and certificates are left out. It has the names and addresses of Services, endpoints and pods.
The commands above read it back with --bundle. Exits with 1 when the proxy does not answer, and still writes the rest.

Examples:
  kube-proxyctl bundle -f case.tar.gz
  kubectl -n kube-system exec POD -- kube-proxyctl bundle -f - > case.tar.gz
  kube-proxyctl --bundle case.tar.gz status`,
  flags: [fileFlag],
  completes: [],
  hasNames: false,
  async run(context) {
    const { writeBundle } = await import('./bundle/write.ts');
    return writeBundle(context);
  },
};

const ui: Command = {
  name: 'ui',
  usage: '',
  arguments: { least: 0, most: 0 },
  summary: 'serves a page for a browser: state, Services, where their traffic goes and why, timeline',
  details: `The page is at a port of 127.0.0.1, whose address is printed. It only reads, and loads nothing from
elsewhere; on the node, as root, a button follows real packets for ten seconds, like the command trace. It goes on until
Ctrl-C.

Examples:
  kube-proxyctl ui
  kube-proxyctl -N node-1 ui --port 8080`,
  flags: [portFlag],
  hasNames: false,
  completes: [],
  async run(context) {
    const { servePage } = await import('./page/serve.ts');
    return servePage(context);
  },
};

const version: Command = {
  name: 'version',
  usage: '',
  arguments: { least: 0, most: 0 },
  summary: 'version and commit of kube-proxyctl and, if it answers, of the proxy that runs',
  details: 'Exits with 0 also when the proxy does not answer.',
  flags: [],
  hasNames: false,
  completes: [],
  async run(context) {
    const report = await versionReport(context.source);
    print(context, report, () => versionText(report));
    return EXIT_OK;
  },
};

/** In the order in which help shows them. */
export const commands: readonly Command[] = [
  status,
  services,
  endpoints,
  explain,
  trace,
  diff,
  journal,
  top,
  flows,
  affinity,
  ui,
  bundle,
  version,
];

interface ListQuestion<T> {
  readonly look: () => Promise<ListReport<string, T>>;
  /** Throws when nothing was found although a name was given. */
  readonly check: (report: ListReport<string, T>) => Promise<void>;
  readonly text: (items: readonly T[]) => string;
}

/** Prints a list, or with --watch the list and then its changes. */
async function showList<T extends object>(
  context: CommandContext,
  listing: Listing<T>,
  { look, check, text }: ListQuestion<T>,
): Promise<ExitCode> {
  const lookSorted = async () => {
    const report = await look();
    return { ...report, items: sorted(report.items, listing.keyOf) };
  };
  const report = await lookSorted();
  const { items } = report;
  await check(report);
  if (items.length === 0) noteNone(context);
  if (context.options.watch) {
    const show = listChanges(context, listing);
    await watch(context, report, lookSorted, (now) => show(now.items));
  } else {
    print(
      context,
      report,
      () => text(items),
      () => items.map(listing.nameOf),
    );
  }
  return EXIT_OK;
}

/** A namespace may be misspelt: says on stderr that it has nothing. */
function noteNone({ options, terminal }: CommandContext): void {
  const { namespace } = namespaceOf(options);
  if (namespace !== undefined) terminal.stderr.write(`Nothing found in namespace ${namespace}.\n`);
}

function sorted<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  const keyed = items.map((item) => ({ item, key: keyOf(item) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ item }) => item);
}
