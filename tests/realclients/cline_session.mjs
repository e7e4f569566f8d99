// Runs one prompt with the session library of Cline, in the way of its command line: a new session, or one to resume.
// Arguments: the address and the name of the model, the prompt, and a session to resume. The library lies beside node.
import { pathToFileURL } from "node:url";

const packages = process.execPath.replace(/node_modules\/.*/, "node_modules");
const [baseUrl, modelId, prompt, sessionId] = process.argv.slice(2);
const { ClineCore } = await import(pathToFileURL(`${packages}/@cline/core/dist/index.js`));

const cline = await ClineCore.create({ backendMode: "local" });
const started = await cline.start({
  source: "cli",
  config: {
    providerId: "openai-compatible",
    modelId,
    apiKey: "lab",
    baseUrl,
    cwd: process.cwd(),
    workspaceRoot: process.cwd(),
    mode: "yolo",
    enableTools: true,
    enableSpawnAgent: true,
    enableAgentTeams: false,
    systemPrompt: "You help.",
    ...(sessionId ? { sessionId } : {}),
  },
  prompt,
  interactive: false,
  ...(sessionId ? { initialMessages: await cline.readMessages(sessionId) } : {}),
});
console.log(started.sessionId, started.result?.text, started.result?.finishReason);
await cline.dispose();
process.exit(started.result?.finishReason === "completed" ? 0 : 1);
