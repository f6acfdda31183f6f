import { defineFlag, type Flag } from '../cli/flag-set.ts';
import { bool, duration, type FlagType, int32, string } from '../cli/flag-types.ts';
import { type FlowState, flowStates, type TrafficGrouping } from '../inspect/traffic-api.ts';
import { HOUR, MILLISECOND, SECOND } from '../lib/duration.ts';
import type { Protocol } from '../model/objects.ts';

export const forms = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type OutputForm = (typeof forms)[number];

export const groupings = ['service', 'endpoint', 'client'] as const satisfies readonly TrafficGrouping[];
/** What `top` sorts by. */
export const sortKeys = ['connections', 'bytes', 'open', 'failed'] as const;
export type SortKey = (typeof sortKeys)[number];
export const protocols = ['TCP', 'UDP', 'SCTP'] as const satisfies readonly Protocol[];
/** The values of the flags of kube-proxyctl. */
export interface CtlOptions {
  server: string;
  onNode: string;
  context: string;
  as: string;
  proxyNamespace: string;
  proxySelector: string;
  proxyPort: number;
  config: string;
  withoutProxy: boolean;
  manifests: string;
  kubeconfig: string;
  node: string;
  proxyMode: string;
  namespace: string;
  allNamespaces: boolean;
  output: OutputForm;
  /** Undefined when it was not given. */
  timeout: bigint | undefined;
  interface: string;
  live: boolean;
  for: bigint;
  packets: number;
  since: string;
  by: TrafficGrouping | undefined;
  sort: SortKey;
  client: string;
  endpoint: string;
  pod: string;
  protocol: Protocol | undefined;
  state: FlowState | undefined;
  limit: number;
  bundle: string;
  file: string;
  port: number;
  watch: boolean;
  interval: bigint;
  count: number;
  help: boolean;
  version: boolean;
}

export const defaultOptions: Readonly<CtlOptions> = {
  server: '',
  onNode: '',
  context: '',
  as: '',
  proxyNamespace: 'kube-system',
  proxySelector: 'k8s-app=kube-proxy',
  proxyPort: 10_249,
  config: '',
  withoutProxy: false,
  manifests: '',
  kubeconfig: '',
  node: '',
  proxyMode: '',
  namespace: '',
  allNamespaces: false,
  output: 'table',
  timeout: undefined,
  interface: '',
  live: false,
  for: 10n * SECOND,
  packets: 5,
  since: '',
  by: undefined,
  sort: 'connections',
  client: '',
  endpoint: '',
  pod: '',
  protocol: undefined,
  state: undefined,
  limit: 1000,
  bundle: '',
  file: '',
  port: 0,
  watch: false,
  interval: 2n * SECOND,
  count: 0,
  help: false,
  version: false,
};

/** Whether a form is for people. */
export function isTable(form: OutputForm): form is 'table' | 'wide' {
  return form === 'table' || form === 'wide';
}

/** One of some words, in upper or lower case. `name` is the name of the type in the help text. */
function oneOf<Word extends string, Value extends Word | undefined = Word>(
  words: readonly Word[],
  name: string,
): FlagType<Word | Value> {
  return {
    name,
    parse(text) {
      const word = words.find((known) => known.toLowerCase() === text.toLowerCase());
      if (word === undefined) throw new Error(`is none of ${words.join(', ')}`);
      return word;
    },
    format: (word) => word ?? '',
  };
}

/** Timers of Node.js cannot be set for longer than some weeks. */
const span: FlagType<bigint> = {
  ...duration,
  parse(text, current, isFirst) {
    const time = duration.parse(text, current, isFirst);
    if (time < MILLISECOND || time > 24n * HOUR) throw new Error('is not between 1ms and 24h');
    return time;
  },
};

const optionalSpan: FlagType<bigint | undefined> = {
  ...span,
  parse: (text, current, isFirst) => span.parse(text, current ?? 0n, isFirst),
  format: (time) => (time === undefined ? '' : span.format(time)),
};

/** More packets than this are no story. */
const maxPackets = 1000;

const packetCount: FlagType<number> = {
  ...int32,
  parse(text, current, isFirst) {
    const packets = int32.parse(text, current, isFirst);
    if (packets < 1 || packets > maxPackets) throw new Error(`is not between 1 and ${maxPackets}`);
    return packets;
  },
};

export type CtlFlag = Flag<CtlOptions>;

function flag<Key extends keyof CtlOptions>(
  name: string,
  key: Key,
  type: FlagType<CtlOptions[Key]>,
  help: string,
  shorthand?: string,
): CtlFlag {
  return defineFlag<CtlOptions, CtlOptions[Key]>({
    name,
    type,
    default: defaultOptions[key],
    help,
    write: (options, value) => {
      options[key] = value;
    },
    ...(shorthand !== undefined && { shorthand }),
  });
}

export const helpFlag: CtlFlag = flag('help', 'help', bool, 'Show help for the program or the command.', 'h');

/** Flags by which every command asks the proxy of another node. All but the first need the first. */
const nodeFlags: readonly CtlFlag[] = [
  flag('on-node', 'onNode', string, 'Ask the proxy of this node, through kubectl port-forward.', 'N'),
  flag(
    'kubeconfig',
    'kubeconfig',
    string,
    'With -N: passed on to kubectl. Without -N: decide without a proxy, with the objects of the API server in this kubeconfig file (only services, endpoints, explain, trace and diff).',
  ),
  flag('context', 'context', string, 'With -N: passed on to kubectl.'),
  flag('as', 'as', string, 'With -N: passed on to kubectl.'),
  flag('proxy-namespace', 'proxyNamespace', string, 'With -N: the namespace of the pods of kube-proxy.'),
  flag('proxy-selector', 'proxySelector', string, 'With -N: the label selector of the pods of kube-proxy.'),
  flag('proxy-port', 'proxyPort', int32, 'With -N: the port of the metrics server of kube-proxy.'),
];

/** Those that have no effect without -N. */
export const needNode = nodeFlags
  .map(({ name }) => name)
  .filter((name) => !['on-node', 'kubeconfig'].includes(name));

/** Flags of every command. */
export const commonFlags: readonly CtlFlag[] = [
  flag(
    'server',
    'server',
    string,
    'URL of the metrics server of kube-proxy. (default $KUBE_PROXYCTL_SERVER, then http://127.0.0.1:10249)',
  ),
  flag(
    'config',
    'config',
    string,
    'Configuration file of kube-proxy: where its metrics server is, or how to decide without a proxy.',
  ),
  flag(
    'output',
    'output',
    oneOf(forms, 'form'),
    'Form of the answer: table, wide (a table with every column, never cut), json, yaml or name (one per line).',
    'o',
  ),
  flag('timeout', 'timeout', optionalSpan, 'How long to wait for an answer. (default 1m0s; 5s for status)'),
  ...nodeFlags,
  helpFlag,
];

/**
 * Flags of the commands that also work without a proxy. The first two have that effect, and so has --kubeconfig; the
 * others need one of them.
 */
export const offlineFlags: readonly CtlFlag[] = [
  flag(
    'without-proxy',
    'withoutProxy',
    bool,
    'Decide as a kube-proxy with this --config and read the kernel of this machine, instead of asking a running one.',
  ),
  flag(
    'manifests',
    'manifests',
    string,
    'The same with the objects in this file or folder of manifests, without an API server.',
  ),
  flag('node', 'node', string, 'Without a proxy: the node to decide for. (default the name of this host)'),
  flag('proxy-mode', 'proxyMode', string, 'Without a proxy and without --config: the mode to decide for.'),
];

/** Whether these options mean an answer without a proxy. */
export function isWithoutProxy({ withoutProxy, manifests, kubeconfig, onNode }: CtlOptions): boolean {
  return withoutProxy || manifests !== '' || (kubeconfig !== '' && onNode === '');
}

export const namespaceFlag: CtlFlag = flag(
  'namespace',
  'namespace',
  string,
  'Only Services of this namespace; a NAME without a namespace is looked up in it.',
  'n',
);

/** Flags of the commands that show Services of all namespaces unless -n is given. */
export const namespaceFlags: readonly CtlFlag[] = [
  namespaceFlag,
  flag(
    'all-namespaces',
    'allNamespaces',
    bool,
    'Services of all namespaces, which is the default; -n then has no effect.',
    'A',
  ),
];

export const interfaceFlag: CtlFlag = flag(
  'interface',
  'interface',
  string,
  'The interface on which the packet arrives. (default the one that leads to its source)',
);

export const liveFlag: CtlFlag = flag(
  'live',
  'live',
  bool,
  'Also send the packet from this node and trace it through the rules. Needs CAP_NET_ADMIN; traces do not show legacy iptables or IPVS.',
);

export const traceFlags: readonly CtlFlag[] = [
  flag('for', 'for', span, 'How long to wait for packets.'),
  flag('packets', 'packets', packetCount, 'End after the first packets of this many connections.'),
];

const paceFlags: readonly CtlFlag[] = [
  flag('interval', 'interval', span, 'Time between two looks at the proxy.'),
  flag(
    'count',
    'count',
    int32,
    'End after this many looks; of flows, after this many events. (default one for top in a pipe, else no end)',
  ),
];

export const topFlags: readonly CtlFlag[] = [
  flag(
    'by',
    'by',
    oneOf<TrafficGrouping, undefined>(groupings, 'grouping'),
    'What a line stands for: service, endpoint or client. (default service; endpoint with a NAME)',
  ),
  flag(
    'sort',
    'sort',
    oneOf(sortKeys, 'figure'),
    'What comes first: the most new connections, bytes, open connections, or failed connections.',
  ),
  ...paceFlags,
];

const peerFlags: readonly CtlFlag[] = [
  flag('client', 'client', string, 'Only this client, as IP or CIDR; of flows also as IP:PORT.'),
  flag('endpoint', 'endpoint', string, 'Only this endpoint, as IP, IP:PORT or CIDR.'),
];

const limitFlag = flag('limit', 'limit', int32, 'The most clients to show, up to 10000.');

export const affinityFlags: readonly CtlFlag[] = [...peerFlags, limitFlag];

/** Flags that choose flows. */
export const flowFlags: readonly CtlFlag[] = [
  ...peerFlags,
  flag('pod', 'pod', string, 'Only flows to this pod, as NAME or NAMESPACE/NAME.'),
  flag(
    'protocol',
    'protocol',
    oneOf<Protocol, undefined>(protocols, 'protocol'),
    'Only flows of this protocol: TCP, UDP or SCTP.',
  ),
  flag(
    'state',
    'state',
    oneOf<FlowState, undefined>(flowStates, 'state'),
    'Only flows in this state, such as ESTABLISHED, SYN_SENT (no answer yet), or UNREPLIED for UDP.',
  ),
];

/** Flags of the commands that can go on and show changes. */
export const watchFlags: readonly CtlFlag[] = [
  flag('watch', 'watch', bool, 'Show changes as they happen, until Ctrl-C or --count ends it.', 'w'),
  ...paceFlags,
];

export const sinceFlag: CtlFlag = flag(
  'since',
  'since',
  string,
  'Only what happened in this time until now, such as 10m, or since a time in RFC 3339.',
);

export const bundleFlag: CtlFlag = flag(
  'bundle',
  'bundle',
  string,
  'Answer from this archive of kube-proxyctl bundle, without a proxy.',
);

export const fileFlag: CtlFlag = flag(
  'file',
  'file',
  string,
  'Where to write the archive; - for stdout. (default kube-proxy-bundle-TIME.tar.gz)',
  'f',
);

const portNumber: FlagType<number> = {
  ...int32,
  parse(text, current, isFirst) {
    const port = int32.parse(text, current, isFirst);
    if (port < 0 || port > 65_535) throw new Error('is not a number from 0 to 65535');
    return port;
  },
};

export const portFlag: CtlFlag = flag(
  'port',
  'port',
  portNumber,
  'The port of 127.0.0.1 that the page is served at; 0 for a free one.',
);

export const versionFlag: CtlFlag = flag('version', 'version', bool, 'Print the version and exit.');

export const allFlags: readonly CtlFlag[] = [
  ...commonFlags,
  ...namespaceFlags,
  ...offlineFlags,
  interfaceFlag,
  liveFlag,
  ...traceFlags,
  sinceFlag,
  bundleFlag,
  fileFlag,
  portFlag,
  ...topFlags.filter((flag) => !paceFlags.includes(flag)),
  ...flowFlags,
  limitFlag,
  ...watchFlags,
  versionFlag,
];
