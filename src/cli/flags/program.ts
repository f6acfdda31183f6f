import { bool, type FlagType, float32, int32, mapStringBool, string } from '../flag-types.ts';
import { versionFlag } from '../version.ts';
import { type FlagValues, field, flag, type ProxyFlag } from './flag.ts';

const outputForm: FlagType<'text' | 'json'> = {
  name: 'form',
  parse(text) {
    if (text !== 'text' && text !== 'json') throw new Error('is none of text, json');
    return text;
  },
  format: (form) => form,
};

const program = (o: FlagValues) => o;
const config = (o: FlagValues) => o.draft;
const client = (o: FlagValues) => o.draft.clientConnection;

export const programFlags: readonly ProxyFlag[] = [
  flag(
    'config',
    string,
    field(program, 'configPath'),
    'Read the configuration from this file. Of the other flags, --cleanup, --init-only, --dry-run, --output, --write-config-to, --master, --manifests, --hostname-override, --inspection-from, --service-metrics, --service-metrics-max, --reset-departed, --nftables-fast-path, --nftables-fast-path-after, --version and the logging flags still apply; the rest is ignored.',
  ),
  flag(
    'write-config-to',
    string,
    field(program, 'writeConfigTo'),
    'Write the effective configuration to this file as YAML, then exit.',
  ),
  flag(
    'cleanup',
    bool,
    field(program, 'cleanup'),
    'Remove the rules of every proxy mode from the kernel, print what was removed, then exit. With --dry-run, print what would be removed, and remove nothing.',
  ),
  flag(
    'init-only',
    bool,
    field(program, 'initOnly'),
    'Do the set-up that needs full privileges, then exit. Give --config as well to do it for the same configuration as the main program.',
  ),
  flag(
    'dry-run',
    bool,
    field(program, 'dryRun'),
    'Print what a start with this configuration and the objects of the cluster would change in the kernel, write nothing, then exit: with 0 when there is nothing to change, with 2 when there is, with 1 on an error.',
  ),
  flag(
    'output',
    outputForm,
    field(program, 'output'),
    'How --dry-run and --cleanup print their result: text or json.',
    { shorthand: 'o' },
  ),
  flag(
    'feature-gates',
    mapStringBool,
    field(config, 'featureGates'),
    'Feature gates to switch on or off, as a comma-separated list of name=bool.',
  ),
  flag('help', bool, field(program, 'help'), 'Show this text.', { shorthand: 'h' }),
  flag(
    'version',
    versionFlag,
    field(program, 'version'),
    'Print the version and exit; with "raw", in detail. A version such as v1.37.0-mine is reported instead of the built-in one.',
  ),
];

export const sourceFlags: readonly ProxyFlag[] = [
  flag(
    'kubeconfig',
    string,
    field(client, 'kubeconfig'),
    'Kubeconfig file that says how to reach the API server. Without it and --master, the service account of the pod is used.',
  ),
  flag(
    'master',
    string,
    field(program, 'master'),
    'URL of the API server; overrides the one in the kubeconfig file.',
  ),
  flag(
    'manifests',
    string,
    field(program, 'manifests'),
    'Read Services and EndpointSlices from this file or folder of YAML or JSON files instead of an API server.',
  ),
  flag(
    'kube-api-content-type',
    string,
    field(client, 'contentType'),
    'Content type asked of the API server.',
  ),
  flag(
    'kube-api-qps',
    float32,
    field(client, 'qps'),
    'Requests per second to the API server; a negative number means no limit.',
  ),
  flag(
    'kube-api-burst',
    int32,
    field(client, 'burst'),
    'Requests to the API server that may be sent at once above the rate limit.',
  ),
  flag(
    'hostname-override',
    string,
    field(program, 'hostnameOverride'),
    'Name of the Node this runs on; by default the name of the host.',
  ),
  flag(
    'show-hidden-metrics-for-version',
    string,
    field(config, 'showHiddenMetricsForVersion'),
    'Show the metrics that were hidden in this earlier minor release, for example 1.36.',
  ),
];
