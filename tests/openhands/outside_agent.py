"""A stock agent of the SDK in a process of its own, on the kernel that OH_URL names."""

import os
import sys

from openhands.sdk import LLM, Agent, Conversation, Tool

import oh_jupyter.openhands

names = ("terminal", "file_editor", "browser_tool_set", "ipython")
llm = LLM(model="openai/scripted", base_url=os.environ["CHAT_URL"], api_key="dummy", num_retries=0)
agent = Agent(llm=llm, tools=[Tool(name=name) for name in names])
conversation = Conversation(agent=agent, workspace=os.getcwd(), visualizer=None)
conversation.send_message(sys.argv[1])
oh_jupyter.openhands.run(conversation)
print(conversation.state.execution_status.value)
os._exit(0)  # the SDK's threads would keep it for a while
