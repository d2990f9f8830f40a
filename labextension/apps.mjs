// Bundle each MCP App of src/apps with its styles into one HTML file, which the MCP server sends.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import { rspack } from '@rspack/core';

const STYLES = {
  approval: ['apps/app', 'section', 'confirm'],
  table: ['apps/app'],
  page: ['apps/app']
};
const TARGET = new URL('../oh_jupyter/mcp_tools/apps/', import.meta.url);
const here = new URL('.', import.meta.url).pathname;
const require = createRequire(import.meta.url);

/** Return the script of an app; Preact is a tenth of React's size. */
function bundle(name) {
  const path = `${here}lib/bundles`;
  const compiler = rspack({
    mode: 'production',
    context: here,
    entry: `./lib/apps/${name}.js`,
    output: { path, filename: `${name}.js` },
    target: ['web', 'es2022'],
    devtool: false,
    performance: { hints: false },
    resolve: {
      alias: { react: require.resolve('preact/compat') }
    }
  });
  return new Promise((resolve, reject) => {
    compiler.run((error, stats) => {
      const fault = error ?? (stats.hasErrors() && new Error(stats.toString()));
      const done = () =>
        fault ? reject(fault) : resolve(`${path}/${name}.js`);
      compiler.close(done);
    });
  });
}

const license = await readFile(`${here}node_modules/preact/LICENSE`, 'utf8');
await mkdir(TARGET, { recursive: true });
for (const [name, sheets] of Object.entries(STYLES)) {
  const script = await readFile(await bundle(name), 'utf8');
  const styles = await Promise.all(
    sheets.map(sheet => readFile(`${here}style/${sheet}.css`, 'utf8'))
  );
  // In a script, this would be the end of its element.
  const safe = script.replaceAll('</script', '<\\/script');
  const html = `<!doctype html>
<!-- With Preact:
${license.trim()} -->
<html lang="en">
<head>
<meta charset="utf-8">
<title>oh_jupyter ${name}</title>
<style>
${styles.join('\n')}</style>
</head>
<body>
<div id="root"></div>
<script type="module">
${safe}
</script>
</body>
</html>
`;
  await writeFile(new URL(`${name}.html`, TARGET), html);
  console.log(`${name}.html: ${Math.round(html.length / 1024)} KiB`);
}
