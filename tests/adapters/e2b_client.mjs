// Uses E2B's client for JavaScript like a program, and prints what it gets as JSON.
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create()
const lines = []
const cell = await sandbox.runCode("print('out')\n6 * 7", { onStdout: m => lines.push(m.line) })
const failed = await sandbox.runCode('1 / 0')
const table = await sandbox.runCode("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
const context = await sandbox.createCodeContext({})
const contexts = await sandbox.listCodeContexts()
await sandbox.removeCodeContext(context)
const sleep = 'import time\nended = 0\ntry: time.sleep(1000)\nfinally: ended = 1'
const late = await sandbox.runCode(sleep, { timeoutMs: 2000 }).catch(error => error.name)
const ended = await sandbox.runCode('ended')
await sandbox.kill()
console.log(
  JSON.stringify({
    lines,
    text: cell.text,
    error: failed.error.name,
    data: table.results[0].data,
    contexts: contexts.length,
    late,
    ended: ended.text
  })
)
