"""Drives every tool of every profile with the official client of the protocol.

It checks each answer against the schema that the tool has announced. Arguments: the program
`vmcell`, and a folder of the host that the server may use.
"""

import asyncio
import os
import subprocess
import sys

import httpx2
from jsonschema import Draft202012Validator
from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

VMCELL, FOLDER = sys.argv[1:]

PROFILES = ["vm-run", "workspace-core", "workspace-full"]


class Driver:
    """Calls tools, and remembers which."""

    def __init__(self, client):
        self.client = client
        self.called = set()

    async def __call__(self, tool, /, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, (tool, answer.structured_content)
        self.called.add(tool)
        return answer.structured_content

    async def fails(self, tool, /, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, (tool, answer.structured_content)
        return answer.structured_content["error"]


def stdio(profile):
    arguments = ["mcp", "serve", "--profile", profile, "--allow-path", FOLDER]
    return stdio_client(StdioServerParameters(command=VMCELL, args=arguments, env=dict(os.environ)))


def check_schemas(tools):
    """Checks that all schemas are schemas, and that they tell good arguments from bad ones."""
    for tool in tools:
        for schema in [tool.input_schema, tool.output_schema]:
            assert schema["type"] == "object", tool.name
            Draft202012Validator.check_schema(schema)
    full = "service_start" in {tool.name for tool in tools}
    for name, arguments, good in [
        ("vm_run", {"command": "true"}, True),
        ("vm_run", {"command": ["true"]}, True),
        ("vm_run", {}, False),
        ("vm_run", {"command": 5}, False),
        ("vm_run", {"command": "true", "image": "/dev/sda"}, False),
        ("workspace_create", {}, True),
        ("workspace_create", {"network_policy": "egress"}, full),
        ("workspace_create", {"network_policy": "all"}, False),
        ("workspace_create", {"secrets": [{"name": "a", "value": "b"}]}, full),
        ("workspace_exec", {"workspace_id": "a", "command": "b"}, True),
        ("workspace_exec", {"workspace_id": "a", "command": "b", "secret_env": {"c": "D"}}, full),
    ]:
        for tool in tools:
            if tool.name == name:
                valid = Draft202012Validator(tool.input_schema).is_valid(arguments)
                assert valid == good, (name, arguments)


async def every_tool(client):
    call = Driver(client)
    tools = (await client.list_tools()).tools
    check_schemas(tools)
    listed = {tool.name for tool in tools}
    assert (await call("vm_run", command="echo hi", mem_mib=128))["stdout"] == "hi\n"
    if listed == {"vm_run"}:
        return
    created = await call("workspace_create", mem_mib=128, labels={"by": "python"})
    w = {"workspace_id": created["workspace_id"]}
    with open(f"{FOLDER}/host.txt", "w") as file:
        file.write("from the host\n")
    await call("workspace_sync_push", **w, source_path=FOLDER)
    await call("workspace_file_write", **w, path="a.txt", text="one\n")
    assert (await call("workspace_file_read", **w, path="host.txt"))["text"] == "from the host\n"
    await call("workspace_file_list", **w, recursive=True)
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
    await call("workspace_patch_apply", **w, patch=patch)
    assert (await call("workspace_exec", **w, command=["cat", "a.txt"]))["stdout"] == "two\n"
    changes = (await call("workspace_diff", **w))["changes"]
    assert {"a.txt", "host.txt"} <= {change["path"] for change in changes}, changes
    await call("workspace_export", **w, path="a.txt", output_path=f"{FOLDER}/out.txt")
    assert open(f"{FOLDER}/out.txt").read() == "two\n"
    await call("workspace_logs", **w)
    await call("workspace_update", **w, name=f"by-python-{os.getpid()}")
    await call("workspace_status", **w)
    await call("workspace_list")
    if "service_start" in listed:
        await only_in_full(call, w)
    await call("workspace_reset", **w)
    await call("workspace_delete", **w)
    error = await call.fails("workspace_status", **w)
    assert error["code"] == "no-such-workspace", error
    missing = listed - call.called
    assert not missing, f"not called: {missing}"


async def only_in_full(call, w):
    await call("vm_list_environments")
    for use in ["vm_exec", "vm_delete"]:
        vm = {"vm_id": (await call("vm_create", mem_mib=128))["vm_id"]}
        await call("vm_start", **vm)
        await call("vm_status", **vm)
        await call("vm_network_info", **vm)
        if use == "vm_exec":
            assert (await call("vm_exec", **vm, command="true"))["exit_code"] == 0
        else:
            await call("vm_stop", **vm)
            await call("vm_delete", **vm)
    await call("vm_reap_expired")
    await call("snapshot_create", **w, snapshot_name="one")
    await call("snapshot_list", **w)
    await call("snapshot_delete", **w, snapshot_name="one")
    service = {**w, "service_name": "beat"}
    line = "echo started; exec sleep 1000"
    probe = {"type": "log", "pattern": "started"}
    started = await call("service_start", **service, command=line, readiness=probe)
    assert started["service"]["state"] == "ready", started
    await call("service_list", **w)
    await call("service_status", **service)
    assert (await call("service_logs", **service))["log"] == "started\n"
    await call("service_stop", **service)
    shell = {**w, "shell_id": (await call("shell_open", **w))["shell_id"]}
    await call("shell_write", **shell, input="echo $((6 * 7))")
    read = await call("shell_read", **shell, plain=True, wait_for_idle_ms=300)
    assert "\n42\n" in read["output"], read
    await call("shell_signal", **shell)
    await call("shell_close", **shell)
    await call("workspace_stop", **w)
    await call("workspace_disk_list", **w, path="/workspace")
    assert (await call("workspace_disk_read", **w, path="/workspace/a.txt"))["text"] == "two\n"
    await call("workspace_disk_export", **w, output_path=f"{FOLDER}/disk-{os.getpid()}.ext4")
    os.remove(f"{FOLDER}/disk-{os.getpid()}.ext4")
    await call("workspace_start", **w)


async def over_standard_streams():
    for profile in PROFILES:
        async with stdio(profile) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            await every_tool(session)
            print(profile, "on standard streams", flush=True)


async def over_http(profile):
    arguments = [VMCELL, "mcp", "serve", "--listen", "127.0.0.1:0", "--profile", profile]
    arguments += ["--allow-path", FOLDER]
    server = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        name, value = server.stdout.readline().strip().split(": ", 1)
        async with httpx2.AsyncClient(headers={name: value}, timeout=60) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                await every_tool(client)
                print(profile, "on HTTP", flush=True)
    finally:
        server.terminate()
        server.wait()


asyncio.run(over_standard_streams())
for profile in PROFILES:
    asyncio.run(over_http(profile))
