/** Bundles each command into one file under dist/. koffi stays outside: it brings a native binary per platform. */
import { chmodSync, cpSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const root = resolve(import.meta.dirname, '..');
const dist = join(root, 'dist');
const commands = { 'kube-proxy': './src/main.ts', 'kube-proxyctl': './src/cli/ctl/main.ts' };

rmSync(dist, { recursive: true, force: true });
for (const [command, entry] of Object.entries(commands)) {
  const outfile = join(dist, `${command}.js`);
  const { metafile } = await build({
    stdin: {
      contents: `import { main } from '${entry}';\nawait main(process.argv.slice(2));\n`,
      resolveDir: root,
      sourcefile: `${command}.js`,
    },
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    external: ['koffi'],
    banner: {
      js: "#!/usr/bin/env node\nimport { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    metafile: true,
  });
  chmodSync(outfile, 0o755);
  const bytes = Object.values(metafile.outputs).reduce((sum, output) => sum + output.bytes, 0);
  console.log(`dist/${command}.js  ${(bytes / 1024).toFixed(0)} KiB`);
}
cpSync(join(root, 'LICENSE'), join(dist, 'LICENSE'));
