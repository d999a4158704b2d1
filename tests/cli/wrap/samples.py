"""Configurations of each client, as people write them: comments, odd layout, byte order marks."""

SAMPLES = {
    ".claude.json": """{
  "numStartups": 7, "tips": {"a b": 1.0},
  "mcpServers": {"mem": {"type": "stdio", "command": "npx", "args": ["-y", "mem"], "env": {}}},
  "projects": {
    "/src/one": {"mcpServers": {"mem": {"command": "/opt/one server", "args": []}}, "history": []},
    "/src/two": {"mcpServers": {"mem": {"type": "stdio", "command": "npx", "args": ["-y", "mem"]}}}
  }
}""",
    "project/.mcp.json": """{"mcpServers":
{"docs":{"command":"uvx","args":["docs"],"env":{"K":"${K}"}}}}""",
    ".config/Claude/claude_desktop_config.json": """\ufeff{
\t"mcpServers": {
\t\t"files": {
\t\t\t"args": [
\t\t\t\t"-y",
\t\t\t\t"@x/files", "/data/zoë/Übung"
\t\t\t],
\t\t\t"command": "npx"
\t\t}
\t}
}
""",
    ".codex/config.toml": """# the model
model = "gpt-5.5"\r
\r
[mcp_servers.fs] # files\r
command = "npx" # of nvm\r
args = [\r
    "-y", # yes\r
    'server "fs"',\r
]\r
startup_timeout_sec = 20\r
\r
[mcp_servers.fs.env]\r
TOKEN = "s3cr3t"\r
\r
[mcp_servers."dotted.name"]\r
command='plain'\r
# last word\r
[mcp_servers.remote]\r
url = "http://127.0.0.1:1/mcp" # at home\r
bearer_token_env_var = "HOME_TOKEN"\r
""",
    "project/.codex/config.toml": """mcp_servers = { # inline
  two = { command = "second", args = ["x"] }, three={command="third"} }
""",
    ".gemini/settings.json": """// Gemini
{
    "theme": "dark", /* not
                        light */
    "mcpServers": { "g": { "httpUrl": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "$KEYKEY"} } }
}
""",
    ".qwen/settings.json": """
{ "mcpServers" : { "q" : { "command" : "node" , "args" : [ "q.js" ] , "timeout" : 5000 , } , } , }
""",
    ".cursor/mcp.json": """{
  "mcpServers": {
    // "command": "not this one"
    "old": { "command": "old", "disabled": true },
    "cur": {
      "url": "http://127.0.0.1:1/sse", // the stream
      "headers": {
        "Authorization": "Bearer a-long-secret"
      }
    }
  },
}
""",
    ".config/Code/User/mcp.json": """{
\t"inputs": [{"id": "key", "type": "promptString", "password": true}],
\t"servers": {
\t\t"vs": {
\t\t\t"type": "stdio",
\t\t\t"command": "${workspaceFolder}/server",
\t\t\t"args": [
\t\t\t\t// which port
\t\t\t\t"--port", "1",
\t\t\t],
\t\t\t"envFile": ".env"
\t\t},
\t\t"gh": {"type": "http", "headers": {"Authorization": "Bearer ${input:key}"}, "url": "http://127.0.0.1:1/"}
\t}
}
""",
    ".copilot/mcp-config.json": """
{"mcpServers": {"c": {"type": "local", "command": "c", "args": [ ], "tools": ["*"]}}}
""",
    ".config/opencode/opencode.jsonc": """{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "oc": { "type": "local", "command": ["npx", "-y", "oc"], "environment": {"A": "1"} },
    "far": {"type": "remote", "url": "http://127.0.0.1:1/mcp", "enabled": false, "oauth": false},
  },
}
""",
    "project/.opencode/opencode.jsonc": """{
  "mcp": {
    "timeout": {"startup": 30000},
    "servers": { // version 2
      "o2": {"type": "local", "command": ["npx", "-y", "o2"], "disabled": true},
    },
  },
}
""",
    ".cline/data/settings/cline_mcp_settings.json": """{
  "mcpServers": {
    "cl": {
      "transport": {
        "type": "stdio",
        "command": "cl"
      },
      "autoApprove": ["a"]
    }
  }
}
""",
    ".codeium/windsurf/mcp_config.json": """{"mcpServers":
 {"w":{"serverUrl":/*serverUrl*/"http://127.0.0.1:1/mcp"},"w2":{"command":"w2","alwaysAllow":["\\u00e9"]}}}""",
    ".config/zed/settings.json": """// Zed settings
{
  "buffer_font_size": 15.0,
  "context_servers": {
    "z": {
      "command": /* the command of z */ "z",
      "args": ["--a"], // why
      "env": {},
    },
  },
  // the end
}
""",
    ".kimi-code/mcp.json": """{"mcpServers": {
  "k": {"command": "k", "args": [], "enabled": true},
  "k2": {"url": "http://127.0.0.1:1/mcp", "transport": "http", "bearerTokenEnvVar": "KIMI_TOKEN"}}}
""",
    ".vibe/config.toml": """# Vibe
active_model = "x"

[[mcp_servers]] # the first
name = "v"
transport = "stdio"
command = "npx" # of nvm
args = [
    "-y", # yes
    "李 明",
]
[mcp_servers.env]
TOKEN = "s3cr3t"

[[mcp_servers]]
transport = "http" # far away
name = "v2"
url = "http://127.0.0.1:1/mcp"
headers = { X-Key = "a-long-secret" }

[[models]]
name = "x"
""",
    "project/.vibe/config.toml": """mcp_servers = [ # in brackets\r
  { name = "v3", transport = "stdio", command = ["npx"], args = ["-y", "v3"] }, # three\r
  {name="v4",transport="stdio",command="v4"},\r
]\r
""",
    ".augment/settings.json": """{
 // of mine
 "mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {}},
  "a2": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "a-long-secret"}}},
}
""",
    "project/.augment/settings.local.json": """{"mcpServers": {"a3": {"command": "a3"}}}""",
    ".continue/config.yaml": """\ufeffname: local # of mine
models:
  - &base
    name: x
  - <<: *base
mcpServers:
  # the first
  - name: co
    command: npx # of nvm
    args:
      # in order
      - -y
      - "@x/files" # which
      - 李 明
    env:
      TOKEN: s3cr3t
  -   command: 'co2'
      name: co2

  - {name: co3, command: npx, args: [-y, co3]}
""",
    "project/.continue/mcpServers/db.yaml": """mcpServers:\r
- name: "db"\r
  type: streamable-http # new\r
  url: http://127.0.0.1:1/mcp\r
# the end\r
""",
    "project/.continue/mcpServers/old.json": """{"mcpServers": {"old2": {"command": "o"}}}""",
    ".qoder/settings.json": """{"mcpServers": {"qo": {"command": "npx", "args": ["-y", "qo"]}}}""",
    "project/.qoder/settings.local.json": """{"mcpServers": {"qo2": {"command": "qo2"}}}""",
    ".config/kilo/kilo.jsonc": """{ // Kilo
  "mcp": {"ki": {"type": "local", "command": ["ki"], "environment": {}},
          "ki2": {"type": "remote", "url": "http://127.0.0.1:1/mcp"}},
}
""",
    "project/.kilo/kilo.json": """{"mcp": {"ki3": {"type": "local", "command": ["ki3"]}}}""",
    ".config/goose/config.yaml": """# Goose
GOOSE_MODEL: x
extensions:
  developer:
    type: builtin
    enabled: true
  "go":   # quoted
    args:
    - -y
    - '李 明'   # who
    cmd:   npx
    envs: {TOKEN: s3cr3t, PORT: 0644}
    type: stdio
  go2:
    enabled: yes
    cmd: "go2"
    args: []

  far-goose:
    type: streamable_http # far away
    headers:
      X-Key: a-long-secret
    envs:
      PORT: 0644 # as it is
    uri: http://127.0.0.1:1/mcp
  go3: {type: stdio, cmd: go3, args: [ ]}
# the end
""",
    ".config/amp/settings.json": """{
  "amp.url": "x", // of mine
  "amp.mcpServers": {"am": {"command": "am", "args": ["--a"]}}
}
""",
    ".factory/mcp.json": """{"mcpServers": {"fa": {"type": "stdio", "command": "fa"}}}""",
    ".config/crush/crush.json": """{"mcp": {"cr": {"type": "stdio", "command": "cr"},
 "cr2": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}""",
    ".junie/mcp/mcp.json": """{"mcpServers": {"ju": {"command": "ju", "env": {"K": "v"}}}}""",
    "project/.kiro/settings/mcp.json": """{"mcpServers": {"kr": {"command": "kr"}}}""",
    ".lmstudio/mcp.json": """{"mcpServers": {
 "lm": {"headers": {"X-Key": "a-long-secret"} /* mine */, "url": "http://127.0.0.1:1/mcp"},
 "lm2": {"headers": {"X-Key": "a-long-secret"} // of mine
 , "url": "http://127.0.0.1:1/mcp"}}}""",
    "project/.warp/.mcp.json": """{"mcpServers":
 {"wa": {"command": "w", "working_directory": "/"}}}""",
    ".gemini/config/mcp_config.json": """{"mcpServers": {
 "an": {"serverUrl": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "a-long-secret"}}}}""",
    "project/.trae/mcp.json": """{"mcpServers": {"tr": {"command": "tr"}}}""",
    ".grok/config.toml": """[mcp_servers] # Grok
gr.command = "gr"
gr2.url = "http://127.0.0.1:1/mcp" # far away
  gr2.headers = { X-Key = "a-long-secret" }
""",
    ".codebuddy/.mcp.json": """{"mcpServers": {"cb": {"command": "cb"}}}""",
}
