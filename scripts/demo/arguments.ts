import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** The command line of `npm start`. */
export interface Arguments {
  /** Absolute. */
  readonly manifests: string;
  /** The node that the proxy runs as; undefined when it is not given. */
  readonly node: string | undefined;
  readonly help: boolean;
  /** This process already runs in the network namespace of the demonstration. */
  readonly isInside: boolean;
}

export const helpText = `Usage: npm start -- [PATH] [--node NAME]

Runs kube-proxy on manifests, without a cluster, and shows every two seconds which endpoints answer at each service
address. While it runs, edit the manifests and watch the traffic move. Ctrl-C ends it and leaves nothing behind.

  PATH         a file, or a folder of *.yaml, *.yml and *.json files, with Services and EndpointSlices or Endpoints
               (default examples/shop). That of a cluster: kubectl get services,endpointslices -A -o yaml > cluster.yaml
  --node NAME  the node that the proxy runs as (default node-1, or the one of the first endpoint)
  --help       this text

As root it runs in nftables mode, in a network namespace of its own, where every endpoint gets a stand-in: a tiny server
at the endpoint's address. Nothing of this machine changes. Needs the programs ip and unshare.
As another user it runs in userspace mode, at loopback addresses of this machine. Only endpoints at loopback addresses
(127.0.0.0/8) get a stand-in there; Services with other endpoints are served, but not asked.
`;

/** Marks a start by this program itself. */
export const insideMark = '--in-own-network';

/** Relative paths begin where the user called npm. Throws an error for the user when the arguments are wrong. */
export function readArguments(argv: readonly string[], exampleShop: string): Arguments {
  const { values, positionals } = parse(argv);
  if (positionals.length > 1) throw usageError(`want one PATH, got ${positionals.length}`);
  const [path] = positionals;
  return {
    manifests: path === undefined ? exampleShop : resolve(process.env.INIT_CWD ?? '', path),
    node: values.node,
    help: values.help ?? false,
    isInside: values['in-own-network'] ?? false,
  };
}

function parse(argv: readonly string[]) {
  const options = {
    node: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    'in-own-network': { type: 'boolean' },
  } as const;
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    const unknown = argv.find((arg) => /^-/.test(arg) && !/^(-h|--help|--node(=.*)?)$/.test(arg));
    throw usageError(unknown === undefined ? (error as Error).message : `unknown flag ${unknown}`);
  }
}

function usageError(message: string): Error {
  return new Error(`${message}; see npm start -- --help`);
}
